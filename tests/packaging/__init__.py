"""The image, the release and the kubectl plugin."""
