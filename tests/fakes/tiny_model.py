"""What passes for a model where nobody will run it: the right first bytes, and a megabyte of others, in a wheel."""

from tests.fakes.package_index import make_wheel

CONTENT = b"GGUF\x03\0\0\0" + bytes(range(256)) * 4096
MEMBER = "tiny_model/tiny.gguf"
WHEEL = make_wheel("tiny-model", "1.0", MEMBER, CONTENT)
