"""The templates of pods that controllers will create: what these pods will request."""

from collections.abc import Mapping

from ...model.shapes import Template
from .. import wire
from ..codec.inter_pod import decode_labels, decode_rules
from ..codec.preferences import decode_preferences
from ..codec.quantity import QuantityError
from ..codec.shapes import decode_shape, unmodelled
from ..errors import BadObject


class PodTemplate(wire.Wire):
    """The template of pods, as in batch/v1."""

    metadata: wire.Metadata = wire.Metadata()
    spec: wire.PodSpec = wire.PodSpec()


def decode_template(
    template: PodTemplate, owner: wire.Metadata, part: str, labels: Mapping[str, str]
) -> Template:
    """The template of the pods of a part of a job, with the labels that its controller adds.

    Raises:
        BadObject: the pods cannot be placed, or a request cannot be read.
    """
    spec, all_labels = template.spec, {**template.metadata.labels, **labels}
    metadata = wire.Metadata(namespace=owner.namespace, labels=all_labels)
    pod = wire.Pod(metadata=metadata, spec=spec)
    rules, malformed = decode_rules(pod)
    name = f"{owner.namespace}/{owner.name}"
    if problems := (*malformed, *unmodelled(spec)):
        raise BadObject(name, f"the template of {part} uses {', '.join(problems)}")
    try:
        return Template(
            decode_shape(pod, rules, decode_preferences(pod)), decode_labels(all_labels)
        )
    except QuantityError as problem:
        sentence = f"the template of {part} cannot be read: {problem}"
        raise BadObject(name, sentence) from problem
