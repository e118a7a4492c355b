"""The docs as readers meet them: a site without dead links, figures and commands that are true."""
