import pytest

from pebble import InputError, capacity_words, itemsize


@pytest.mark.parametrize(
    ("text", "dtype", "words"),
    [
        ("48KiB", "float32", 12288),  # 49152 bytes
        ("48KB", "float32", 12000),  # 48000 bytes
        ("1MiB", "float16", 524288),
        ("1MB", "int8", 1000000),
        ("2GiB", "float64", 2**28),
        ("1.5KiB", "float32", 384),
        ("7B", "float32", 1),
        ("100words", "float16", 100),
        ("0.5GB", "float32", 125_000_000),
        (" 3 KiB ", "float32", 768),
    ],
)
def test_sizes(text, dtype, words):
    assert capacity_words(text, dtype) == words


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("64", "capacity '64': has no unit; add one of B, KB, KiB, MB, MiB, GB, GiB or words"),
        ("64kib", "unit 'kib' is none of"),
        ("KiB", "is not a size"),
        ("-1KiB", "is not a size"),
        ("3B", "holds no float32 word of 4 bytes"),
        ("0words", "holds no float32 word"),
    ],
)
def test_bad_sizes_say_why(text, part):
    with pytest.raises(InputError, match=part.replace("(", r"\(")):
        capacity_words(text)


def test_unknown_dtype():
    with pytest.raises(InputError, match="dtype 'float31': is none of float64, float32"):
        itemsize("float31")
