"""What is said where a device is missing, or is not the one asked for."""

import numpy as np
import pytest

from backends.cuda import launch
from pebble import ConvShape, InputError, LaunchError, MissingError

LAYER = ConvShape.of((1, 1, 2), (1, 1, 1))
TILE = {"n": 1, "k": 1, "c": 1, "w": 2}
ONES = (np.ones((1, 1, 2), np.float32), np.ones((1, 1, 1), np.float32))


@pytest.mark.skipif(launch.available(), reason="a CUDA device is here")
def test_a_missing_device_names_what_to_install():
    with pytest.raises(MissingError, match=r"no CUDA device: .* pip install 'redblue\[cuda\]'"):
        launch.run_direct(*ONES, LAYER, TILE)


def test_a_device_without_a_toolkit_is_missing_too(monkeypatch):
    pathfinder = pytest.importorskip("cuda.pathfinder")

    def missing(library):
        raise pathfinder.DynamicLibNotFoundError(f'Failure finding "lib{library}.so"')

    monkeypatch.setattr("numba.cuda.gpus", [0])
    monkeypatch.setattr(pathfinder, "load_nvidia_dynamic_lib", missing)
    with pytest.raises(MissingError, match=r'Failure finding "libnvvm\.so"; install an NVIDIA'):
        launch.device_count()


def test_the_simulator_is_no_device(monkeypatch):
    monkeypatch.setenv("NUMBA_ENABLE_CUDASIM", "1")
    assert not launch.available()
    with pytest.raises(MissingError, match="NUMBA_ENABLE_CUDASIM is set in this process; unset it"):
        launch.run_direct(*ONES, LAYER, TILE)


@pytest.mark.parametrize(
    ("count", "device", "text"),
    [(1, 1, "device 1: only device 0 exists"), (2, -1, "device -1: devices 0 to 1 exist")],
)
def test_c09_a_device_that_does_not_exist(monkeypatch, count, device, text):
    monkeypatch.setattr(launch, "device_count", lambda: count)
    with pytest.raises(InputError, match=text):
        launch.run_direct(*ONES, LAYER, TILE, device=device)


def test_c13_a_stub_of_the_driver_is_named():
    # The text of numba-cuda for cuInit's error 34.
    message = "Call to cuInit results in CUDA_ERROR_STUB_LIBRARY (34)"
    text = launch.explain(message, library="/usr/local/cuda/lib64/stubs/libcuda.so")
    assert message in text and "a stub of the driver library was loaded from /usr/local" in text


@pytest.mark.parametrize(
    "message",
    [
        "[222] Call to cuLinkAddData results in CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
        "ptxas fatal: Unsupported .version 9.5; current version is '9.0'",
    ],
)
def test_c14_ptx_newer_than_the_driver_is_a_version_mismatch(message):
    text = launch.explain(message, versions="toolkit 13.5, driver 13.0")
    assert launch.is_version_mismatch(text)
    assert message in text and text.endswith("linker: toolkit 13.5, driver 13.0")


def test_other_messages_pass_on_one_line():
    assert launch.explain("Error at driver init: \n\nno driver 134\n:") == (
        "Error at driver init: no driver 134"
    )


def test_arrays_above_the_free_memory():
    with pytest.raises(LaunchError, match="need 400 bytes of device memory; 399 are free"):
        launch._check_memory(100, "float32", 399)
