"""A board in a separate process that is accessed over the network: pynq's gRPC service with the simulated board.

``python -m tests.support.host.remote_board DIR ADDRESS`` does the same as PYNQ.remote's server on a board, with the
stubs that pynq installs. It prints a line when it listens, and ends when its standard input ends.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pynq
from pynq.pl_server.remote_device import BS_FPGA_MAN, PYNQ_PORT
from pynq.remote import (
    buffer_pb2,
    buffer_pb2_grpc,
    mmio_pb2,
    mmio_pb2_grpc,
    remote_device_pb2,
    remote_device_pb2_grpc,
)

from host.contract.manifest import read_manifest
from host.contract.simulation_library import find_library
from host.simulated.device import SimulatedBoard

CHUNK = 2 << 20
"""The bytes per message, below gRPC's limit of four megabytes."""


class Files(remote_device_pb2_grpc.RemoteDeviceServicer):
    """The board's files. Writing a bitstream's name to the file of the FPGA manager loads the bitstream."""

    def __init__(self, board: SimulatedBoard, bit: Path) -> None:
        self._board, self._bit = board, bit
        self._files = {
            "/proc/version": b"Linux version 6.6.10 (aarch64-xilinx-linux-gcc)",
            "/proc/device-tree/chosen/pynq_board": b"ZCU104\0",
            "/sys/class/fpga_manager/fpga0/state": b"operating\n",
            "/sys/class/fpga_manager/fpga0/flags": b"0\n",
        }

    def existsfile(self, request: Any, context: Any) -> Any:
        return remote_device_pb2.ExistsFileResponse(exists=request.file_path in self._files)

    def readfile(self, request: Any, context: Any) -> Iterator[Any]:
        yield remote_device_pb2.ReadFileResponse(data=self._files[request.file_path])

    def writefile(self, requests: Iterator[Any], context: Any) -> Any:
        parts = list(requests)
        path = parts[0].file_path
        self._files[path] = b"".join(part.data for part in parts)
        if path == BS_FPGA_MAN:
            assert f"/lib/firmware/{self._files[path].decode()}" in self._files, "its data must precede its name"
            pynq.Overlay(str(self._bit), device=self._board)
        return remote_device_pb2.WriteFileResponse()

    def set_bitstream_attrs(self, request: Any, context: Any) -> Any:
        return remote_device_pb2.SetBitstreamAttrsResponse(status=True)


class Mmio(mmio_pb2_grpc.MmioServicer):
    """The registers, with one request per word."""

    def __init__(self, board: SimulatedBoard) -> None:
        self._board = board

    def get_mmio(self, request: Any, context: Any) -> Any:
        return mmio_pb2.GetMmioResponse(status=True, mmio_id=str(request.base_addr))

    def read(self, request: Any, context: Any) -> Any:
        data = self._board.read_registers(int(request.mmio_id) + request.offset, max(request.length, 4))
        return mmio_pb2.ReadResponse(status=True, data=int.from_bytes(data[: request.length], "little"))

    def write(self, request: Any, context: Any) -> Any:
        self._board.write_registers(int(request.mmio_id) + request.offset, request.data)
        return mmio_pb2.WriteResponse(status=True)


class Buffers(buffer_pb2_grpc.RemoteBufferServicer):
    """The board's buffers. The client always transfers a whole buffer."""

    def __init__(self, board: SimulatedBoard) -> None:
        self._board = board
        self._buffers: dict[str, Any] = {}

    def allocate(self, request: Any, context: Any) -> Any:
        buffer = self._board.allocate((request.size,), np.uint8, cacheable=1)
        self._buffers[str(buffer.device_address)] = buffer
        return buffer_pb2.AllocateResponse(buffer_id=str(buffer.device_address))

    def write(self, requests: Iterator[Any], context: Any) -> Any:
        begin = 0
        for request in requests:
            self._buffers[request.buffer_id][begin : begin + len(request.data)] = np.frombuffer(request.data, np.uint8)
            begin += len(request.data)
        return buffer_pb2.BufferWriteResponse()

    def read(self, request: Any, context: Any) -> Iterator[Any]:
        data = self._buffers[request.buffer_id].tobytes()
        for begin in range(0, len(data), CHUNK):
            yield buffer_pb2.BufferReadResponse(data=data[begin : begin + CHUNK])

    def flush(self, request: Any, context: Any) -> Any:
        self._buffers[request.buffer_id].flush()
        return buffer_pb2.FlushResponse()

    def invalidate(self, request: Any, context: Any) -> Any:
        self._buffers[request.buffer_id].invalidate()
        return buffer_pb2.InvalidateResponse()

    def physical_address(self, request: Any, context: Any) -> Any:
        return buffer_pb2.AddressResponse(address=self._buffers[request.buffer_id].device_address)

    def freebuffer(self, request: Any, context: Any) -> Any:
        self._buffers.pop(request.buffer_id).freebuffer()
        return buffer_pb2.FreeBufferResponse()


def main() -> int:
    """Serve until standard input ends. Return 1 if a buffer was not freed, or was freed while in use."""
    folder, address = Path(sys.argv[1]), sys.argv[2]
    with tempfile.TemporaryDirectory() as work:
        bit = Path(work) / "design.bit"
        bit.write_bytes(b"")
        bit.with_suffix(".hwh").write_bytes(next(iter(sorted(folder.glob("**/*.hwh")))).read_bytes())
        board = SimulatedBoard(read_manifest(folder), find_library(folder, None))
        server = grpc.server(ThreadPoolExecutor(8))
        remote_device_pb2_grpc.add_RemoteDeviceServicer_to_server(Files(board, bit), server)
        mmio_pb2_grpc.add_MmioServicer_to_server(Mmio(board), server)
        buffer_pb2_grpc.add_RemoteBufferServicer_to_server(Buffers(board), server)
        server.add_insecure_port(f"{address}:{PYNQ_PORT}")
        server.start()
        print("listens", flush=True)
        sys.stdin.read()
        server.stop(None).wait()
        left, at_work = board.allocations, list(board.freed_at_work)
        print(f"{left} buffers left, freed at work: {at_work}", flush=True)
        board.close()
    return int(bool(left or at_work))


if __name__ == "__main__":
    sys.exit(main())
