"""Test the solver of traced cycles against cycles derived on paper, and against a simulator that steps every clock.

W[i] and R[i] are the cycles in which element i is written and read. Each loop starts one cycle after its process
(Fabric.loop_entry). A written element can be read in the next cycle, and a read frees its slot for the next cycle.
"""

from __future__ import annotations

import ctypes
import random
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from boards.errors import ChoiceError, RangeError, StateError, UnsupportedError
from systolic.trace.advice import advise
from systolic.trace.events import RegionFacts, SolverOptions, StreamFacts, solver_options
from systolic.trace.solver import DeadlockError, FabricTiming, MemoryTiming, Trace, TraceTiming
from tests.support.cases import cases
from tests.support.errors import raises
from tests.support.trace_kernels import KERNELS, compile_library, our_stream, run, traced

# A cycle is 10 ns. The memory moves 64 bytes per cycle, sends the first beat 20 cycles after its request, and answers
# 10 cycles after the last written beat.
CLOCK = 100.0
FAST = MemoryTiming(peak_gbps=6.4, efficiency=1.0, read_latency_ns=200, write_latency_ns=100)

Run = Callable[..., Trace]


@pytest.fixture(scope="session")
def library(traced_kernels: Path) -> ctypes.CDLL:
    """Return the traced kernels as a loaded library."""
    return ctypes.CDLL(str(traced_kernels))


@pytest.fixture
def kernel(library: ctypes.CDLL) -> Run:
    """Return a function that runs a kernel of this name and returns its trace."""
    return lambda name, *arguments: traced(library, name, *arguments)


def solve(trace: Trace, memory: MemoryTiming = FAST, **options: object) -> TraceTiming:
    """Return the solved timing of a trace at the clock of these tests."""
    return trace.solve(memory, CLOCK, **options)  # type: ignore[arg-type]


def region_cycles(trace: Trace, memory: MemoryTiming = FAST, **options: object) -> int:
    """Return the cycles of a trace's only region."""
    (region,) = solve(trace, memory, **options).regions
    return region.cycles


def process(timing: TraceTiming, name: str) -> tuple[int, int, int, int, int]:
    """Return a process's cycles: busy, waiting for input, for space and for memory, and idle."""
    (found,) = (p for p in timing.regions[0].processes if p.name == name)
    return found.busy, found.wait_input, found.wait_space, found.wait_memory, found.idle


def test_solve_of_pipeline_with_ii_1(kernel: Run) -> None:
    # The loop is entered at 1. The last of 10 iterations starts 9 cycles later and is 5 deep: 1 + 9 + 5.
    assert region_cycles(kernel("run_pipeline", 10, 1, 0, 5)) == 15


def test_solve_of_pipeline_with_ii_3(kernel: Run) -> None:
    assert region_cycles(kernel("run_pipeline", 10, 3, 0, 5)) == 1 + 9 * 3 + 5


def test_solve_starts_second_loop_after_first_has_drained(kernel: Run) -> None:
    assert region_cycles(kernel("run_pipeline", 10, 1, 3, 5)) == 15 + 33


def test_solve_counts_loop_entry_per_loop(kernel: Run) -> None:
    assert region_cycles(kernel("run_pipeline", 10, 1, 3, 5), fabric=FabricTiming(loop_entry=4)) == 48 + 2 * 3


# W[i] = 1 + i and R[i] = 2 + i. The sink ends one cycle after R[7] = 9. With depth 2, W[2] = 3 needs R[0] + 1 = 3, so
# no cycle is lost. With depth 1, W[i + 1] = R[i] + 1 and R[i] = W[i] + 1, so R[7] = 2 + 2·7 = 16.
@cases("depth, cycles", [(1, 17), (2, 10), (32, 10)])
def test_solve_of_pair_depends_on_fifo_depth(kernel: Run, depth: int, cycles: int) -> None:
    assert region_cycles(kernel("run_pair", 8, depth)) == cycles


def test_solve_takes_other_depths_and_latencies_of_one_trace(kernel: Run) -> None:
    trace = kernel("run_pair", 8, 32)
    assert region_cycles(trace, depths={"pipe": 1}) == 17
    # With latency 2, R[i] = W[i] + 2 and W[i + 1] = R[i] + 1, so R[7] = 3 + 3·7 = 24.
    assert region_cycles(trace, depths={"pipe": 1}, fabric=FabricTiming(fifo_latency=2)) == 25
    assert region_cycles(trace) == 10


def test_solve_adds_a_cycle_for_a_fifo_in_memory(kernel: Run) -> None:
    """R[i] is W[i] + 1 through a shift register and W[i] + 2 through a memory. Unbound, eight words of 4,096 bits would
    be a memory."""
    assert [region_cycles(kernel("run_bound", 8, memory, 4096)) for memory in (False, True)] == [10, 11]
    assert region_cycles(kernel("run_bound", 8, True, 4096), fabric=FabricTiming(memory_fifo_latency=4)) == 13


def test_solve_takes_wide_deep_fifo_for_a_memory(kernel: Run) -> None:
    """Expect a shift register up to 1,024 bits, which is 32 words of 32 bits, and a memory for 33 words. The depth
    given to the solver decides."""
    assert [region_cycles(kernel("run_pair", 8, depth)) for depth in (2, 32, 33)] == [10, 10, 11]
    trace = kernel("run_pair", 8, 32)
    assert [region_cycles(trace, depths={"pipe": depth}) for depth in (2, 32, 33)] == [10, 10, 11]


def test_solve_keeps_bound_fifo_kind_at_other_depths(kernel: Run) -> None:
    """Eight words of 200 bits would be a memory without the directive, and two words would not."""
    register = kernel("run_bound", 8, False, 200)
    assert [region_cycles(register, depths={"pipe": depth}) for depth in (2, 100)] == [10, 10]
    memory = kernel("run_bound", 8, True, 200)
    assert [region_cycles(memory, depths={"pipe": depth}) for depth in (8, 100)] == [11, 11]


def test_solve_by_depth_derives_the_fifo_kind(library: ctypes.CDLL) -> None:
    """Five words of 200 bits are 1,000 bits, so a shift register. Six words are more than 1,024 bits, so a memory."""
    trace = Trace(library, by_depth=True)
    trace.begin()
    assert run(library, "run_bound", 8, False, 200) is None
    trace.end()
    assert [region_cycles(trace, depths={"pipe": depth}) for depth in (2, 5, 6, 100)] == [10, 10, 11, 11]


# The sink takes one of 16 elements every 4 cycles: R[i] = 3 + 4·i, and it ends at 3 + 60 + 1 = 64. The relay writes
# element j ≥ 2 at R[j − 2] + 1 = 4·j − 4, and reads in the same cycle. This frees a slot for the source, which writes
# element i ≥ 4 at 4·(i − 2) − 4 + 1 = 4·i − 11, and the last at 49.
def test_solve_propagates_back_pressure_to_the_source(kernel: Run) -> None:
    timing = solve(kernel("run_chain", 16, 4))
    assert timing.regions[0].cycles == 64
    assert process(timing, "source") == (17, 0, 33, 0, 64 - 50)
    assert process(timing, "sink") == (62, 2, 0, 0, 0)
    first, second = timing.regions[0].streams
    assert (first.max_occupancy, second.max_occupancy) == (2, 2)
    assert first.stall_space == 33


# The forwarder reads at 2 + i, forwards at 3 + i and writes at 2 + i + 5. The first sink reads at 4 + i and ends at 4 +
# 7 + 1 = 12. The second sink reads at 8 + i and ends at 16. If the first sink has II 4, it reads element i at 4 + 4·i
# and ends at 4 + 28 + 1 = 33. The forwarded word then waits for space, and stalls the pipeline. Element i ≥ 2 is
# forwarded at R[i − 2] + 1 = 4·i − 3, the last at 25, and is written 4 cycles later.
def test_solve_forwards_a_word_one_cycle_after_its_read(kernel: Run) -> None:
    timing = solve(kernel("run_forwarding", 8, 1))
    assert timing.regions[0].cycles == 16
    assert [found.idle for found in timing.regions[0].processes if found.name.startswith("sink")] == [4, 0]
    slow = solve(kernel("run_forwarding", 8, 4))
    assert slow.regions[0].cycles == 33
    assert [found.idle for found in slow.regions[0].processes if found.name.startswith("sink")] == [0, 33 - 31]


# The source writes at 1…4, pauses 10 cycles, enters a loop and writes at 16…19. The relay is 6 deep and reads elements
# 0…3 at 2…5. It stalls for element 4 until 17, with all four in flight. Element 0 is written at 18 (at 7 without the
# stall), and element 7 at 25. The sink reads one cycle later and ends at 27.
def test_solve_stall_freezes_elements_in_flight(kernel: Run) -> None:
    timing = solve(kernel("run_deep"))
    assert timing.regions[0].cycles == 27
    assert process(timing, "relay") == (1 + 7 + 6, 1 + 11, 0, 0, 1)


# join needs sums[0], the sum of left[0…3]. Thus fork must write right[0…3] before join reads right[0].
def test_solve_of_fork_and_join_at_depth_1_raises_deadlock_error(kernel: Run) -> None:
    with raises(DeadlockError, label=4, cure=("right", 4)) as caught:
        solve(kernel("run_fork", 16, 1))
    sentence = str(caught.value)
    assert "region 4 deadlocks" in sentence
    assert "'fork' waits for space in 'right' (depth 1) for element 1" in sentence
    assert "'gather' waits for element 1 of 'left'" in sentence
    assert "'join' waits for element 0 of 'sums'" in sentence
    assert sentence.endswith("a depth of 4 for 'right' frees it")
    assert caught.value.cure == ("right", 4)
    assert {waiting.process for waiting in caught.value.ring} == {"fork", "gather", "join"}


def test_deadlock_cure_is_the_smallest_depth(kernel: Run) -> None:
    trace = kernel("run_fork", 16, 1)
    assert region_cycles(trace, depths={"right": 4}) > 0
    with raises(DeadlockError, cure=("right", 4)):
        solve(trace, depths={"right": 3})


# A deeper FIFO for one of the two streams would not help. The array is deepened as a whole, as its pragma does.
def test_deadlock_cure_deepens_an_array_of_streams(kernel: Run) -> None:
    trace = kernel("run_paired", 16, 2)
    with raises(DeadlockError, cure=("right", 4)) as caught:
        solve(trace)
    assert {waiting.stream for waiting in caught.value.ring} == {"right[0]", "left[0]", "sums"}
    assert region_cycles(trace, depths={"right": 4}) > 0
    with raises(DeadlockError, cure=None):
        solve(trace, depths={"right": 1, "left": 1})


# fork writes element i at 1 + i, gather sums elements 0…3 at 5, and join reads right[i] at 6 + i. W[5] = 6 is before
# R[0] = 6 frees a slot, so right needs 6 slots. The region ends at 6 + 15 + 1 = 22.
def test_advise_finds_least_depths_at_full_pace(kernel: Run) -> None:
    trace = kernel("run_fork", 16, 1)
    advice = trace.advise(FAST, CLOCK, slack=0)
    assert advice.best_cycles == advice.cycles == 22
    assert advice.declared_cycles is None
    assert advice.depths == {"left": 2, "right": 6, "sums": 1}
    assert region_cycles(trace, depths=advice.depths) == 22
    assert region_cycles(trace, depths={**advice.depths, "right": 5}) > 22
    caps = dict(advice.curve)
    assert caps[1] is None
    assert caps[2] is None
    assert caps[6] == 22
    assert (caps[4] or 0) > 22


class Counted:
    """A trace that counts how often each of its regions is solved."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.solved: Counter[int] = Counter()

    @property
    def regions(self) -> tuple[RegionFacts, ...]:
        return self.trace.regions

    def region_cycles(self, number: int, depths: Sequence[int], options: SolverOptions) -> int | None:
        self.solved[number] += 1
        return self.trace.region_cycles(number, depths, options)


def test_advise_reuses_depths_of_another_region(library: ctypes.CDLL) -> None:
    """Put the longer region first in the trace. It keeps its pace with the depths that the shorter one needs. Both
    regions are solved for the curve and the sums. The longer one is solved only three times more: unbounded, as
    declared, and with these depths."""
    trace = Trace(library)
    trace.begin()
    assert run(library, "run_fork", 64, 1) is None
    assert run(library, "run_fork", 16, 1) is None
    trace.end()
    counted, told = Counted(trace), list[str]()
    advice = advise(counted, solver_options(FAST, CLOCK), 0, told.append)
    assert advice.depths == {"left": 2, "right": 6, "sums": 1}
    shared = 2 + len(advice.curve)
    assert counted.solved[0] <= shared + 3 < counted.solved[1]
    assert told[:2] == ["searching FIFO depths, 0%", "searching FIFO depths, 20%"]
    assert told[-1].startswith("trying FIFOs no deeper than 6, ")


class SharedRoom:
    """A trace of two regions. The first takes 10,000 cycles. The second takes 100 cycles if the FIFOs ``wide`` and
    ``narrow`` have 6 words together, else 101."""

    def __init__(self, wide: int, narrow: int) -> None:
        streams = tuple(
            StreamFacts(name, depth, 100, size, "", "", 8 * size)
            for name, depth, size in (("wide", wide, 8), ("narrow", narrow, 1))
        )
        self.regions = (RegionFacts(0, False, (), 100, streams), RegionFacts(1, False, (), 200, streams))

    def region_cycles(self, number: int, depths: Sequence[int], options: SolverOptions) -> int | None:
        cycles = 10_000 if number == 0 else 100 if sum(depths) >= 6 else 101
        return cycles if not options.limit or cycles <= options.limit else None


def test_advise_is_within_declared_depths_that_keep_the_pace() -> None:
    # a search from unbounded depths would take 2 words of the wide FIFO, for 4 of the narrow one
    enough = advise(SharedRoom(wide=5, narrow=2), solver_options(FAST, CLOCK), 0)
    assert enough.depths == {"wide": 4, "narrow": 2}
    too_shallow = advise(SharedRoom(wide=3, narrow=2), solver_options(FAST, CLOCK), 0)
    assert too_shallow.depths == {"wide": 2, "narrow": 4}
    # the declared depths cost 1 % of the second region, and 0.01 % of both
    allowed = advise(SharedRoom(wide=3, narrow=2), solver_options(FAST, CLOCK), 0.005)
    assert allowed.depths == {"wide": 1, "narrow": 1}
    assert (allowed.best_cycles, allowed.cycles, allowed.declared_cycles) == (10_100, 10_101, 10_101)


# The request is issued at 0 and the loop starts at 2. Beat j arrives at 20 + j, and the last of 64 at 83.
def test_solve_of_reader_bound_by_its_port(kernel: Run) -> None:
    timing = solve(kernel("run_read", 0, 64, 1))
    assert timing.regions[0].cycles == 84
    assert process(timing, "reader") == (66, 0, 0, 18, 0)
    (bundle,) = timing.regions[0].bundles
    assert (bundle.bytes, bundle.busy, bundle.bursts, bundle.write) == (1024, 64, 1, False)


# At 8 bytes per cycle, each beat of 16 bytes takes 2 cycles. The last of 64 arrives at 20 + 126 = 146.
def test_solve_of_reader_bound_by_ddr(kernel: Run) -> None:
    slow = MemoryTiming(peak_gbps=1.6, efficiency=0.5, read_latency_ns=200, write_latency_ns=100)
    timing = solve(kernel("run_read", 0, 64, 1), slow)
    assert timing.regions[0].cycles == 147
    assert process(timing, "reader") == (66, 0, 0, 81, 0)
    assert timing.regions[0].bound_by == "DDR (reader)"


# Two readers share 16 bytes per cycle. Chunks of 4 beats take 4 cycles and alternate between the readers. The last
# chunk starts at 4 + 15·8 = 124, and its last beat arrives at 124 + 20 + 3.
def test_solve_of_two_readers_shares_the_bandwidth(kernel: Run) -> None:
    half = MemoryTiming(peak_gbps=1.6, efficiency=1.0, read_latency_ns=200, write_latency_ns=100)
    timing = solve(kernel("run_read", 0, 64, 2), half)
    assert [p.name for p in timing.regions[0].processes] == ["reader[0]", "reader[1]"]
    assert timing.regions[0].cycles == 148


# Eight beats from beat 252 cross a page: four are before its end and four after it. With one outstanding request, beats
# arrive at 20…23, the next request is issued at 24, and beats arrive at 44…47. With two, the port has no gap.
@cases("address, outstanding, bursts, cycles", [(252, 1, 2, 48), (252, 2, 2, 28), (0, 1, 1, 28)])
def test_solve_splits_a_burst_at_4_kb(kernel: Run, address: int, outstanding: int, bursts: int, cycles: int) -> None:
    memory = MemoryTiming(6.4, 1.0, 200, 100, read_outstanding=outstanding)
    timing = solve(kernel("run_read", address, 8, 1), memory)
    assert timing.regions[0].cycles == cycles
    assert timing.regions[0].bundles[0].bursts == bursts


def test_solve_splits_bursts_at_the_port_length(kernel: Run) -> None:
    # With one outstanding request, 16 beats in bursts of 4 take 20 + 4 cycles per burst.
    memory = MemoryTiming(6.4, 1.0, 200, 100, read_outstanding=1, max_burst_beats=4)
    assert region_cycles(kernel("run_read", 0, 16, 1), memory) == 4 * 24


# The loop starts at 1 and issues requests at 1, 2, 5, 9 …. HLS places the loads 30 stages later, when the memory, with
# a latency of 20, has the data. Beat i is loaded at 31 + i, the last of 16 at 46, and 2 more stages follow. If the
# loads are 5 stages later, the first load waits from 6 until 21, and the later requests wait too. The request of 5 was
# issued in time. The request of 9 is issued at 24, and its first beat, needed at 33, arrives at 44.
@cases("stages, waited", [(30, 0), (5, 15 + 11)])
def test_solve_of_loop_with_requests_and_loads(kernel: Run, stages: int, waited: int) -> None:
    timing = solve(kernel("run_asking", 4), fabric=FabricTiming(request_stages=stages))
    assert process(timing, "reader") == (1 + 15 + 3 + stages, 0, 0, waited, 0)


# The requesting loop starts at 1 and takes 4 + 8 cycles. request_stages does not count, because the loop has no loads.
# The loading loop is entered at 13 and waits from 14 until 21, which is 20 after the first request. Then 16 beats and 2
# more stages follow.
def test_solve_of_separate_request_and_load_loops(kernel: Run) -> None:
    timing = solve(kernel("run_apart", 4), fabric=FabricTiming(request_stages=64))
    assert process(timing, "reader") == (1 + 12 + 1 + 15 + 3, 0, 0, 7, 0)


# Outside a loop, the request is issued at 0 and the load waits from 1 until 20. In a loop, one request is issued per
# cycle, with its load 64 stages later.
@cases("loop, cycles", [(0, 21), (1, 9 + 64 + 3)])
def test_solve_of_access_without_burst_is_a_burst_of_one(kernel: Run, loop: int, cycles: int) -> None:
    timing = solve(kernel("run_single", 10, loop))
    assert timing.regions[0].cycles == cycles
    assert timing.regions[0].bundles[0].bursts == (10 if loop else 1)


# Beats are stored at 2…9 and moved at 10…17. The response arrives at 27.
def test_solve_ends_writer_at_the_memory_response(kernel: Run) -> None:
    timing = solve(kernel("run_write", 8, 0))
    assert process(timing, "writer") == (10, 0, 0, 17, 0)
    # The explicit wait takes a cycle of its own: it sees the response in cycle 27.
    assert region_cycles(kernel("run_write", 8, 1)) == 28


def test_solve_counts_top_between_regions(kernel: Run) -> None:
    timing = solve(kernel("run_top"))
    assert [region.top for region in timing.regions] == [True, False, True, False]
    assert timing.cycles == 5 + (2 + 10 + 2) + 7 + (2 + 10 + 2)
    assert timing.cycles_by_label == {-1: 12, 1: 28}


def step_chain(count: int, ii: list[int], depth: list[int], fifo: list[int]) -> int:
    """Return the cycles of a chain, simulated clock by clock.

    The chain has a source, relays and a sink. Each is a pipeline that stalls as a whole.
    """
    stages = [(1, 1), *zip(ii, [*depth, 1], strict=True)]
    tau = [-1] * len(stages)  # -1: the loop's entry
    written, taken, now = [0] * len(fifo), [0] * len(fifo), 0
    ends = [1 + (count - 1) * interval + deep for interval, deep in stages]
    while any(tau[p] + 1 < ends[p] for p in range(len(stages))):
        visible, space = list(written), [f + t - w for f, w, t in zip(fifo, written, taken, strict=True)]
        for p, (interval, deep) in enumerate(stages):
            if tau[p] + 1 >= ends[p]:
                continue
            at, out = tau[p], tau[p] - (deep - 1)
            reads = p > 0 and at >= 0 and at % interval == 0 and at // interval < count
            writes = p < len(stages) - 1 and out >= 0 and out % interval == 0 and out // interval < count
            if (reads and visible[p - 1] <= taken[p - 1]) or (writes and space[p] < 1):
                continue
            taken[p - 1] += reads
            if writes:
                written[p] += 1
            tau[p] += 1
        now += 1
    return now


@cases("seed", range(40))
def test_solve_of_any_chain_matches_a_clocked_simulation(library: ctypes.CDLL, seed: int) -> None:
    choose = random.Random(seed)
    stages, count = choose.randint(1, 6), choose.randint(1, 40)
    ii = [choose.randint(1, 4) for _ in range(stages + 1)]
    depth = [choose.randint(1, 9) for _ in range(stages)]
    fifo = [choose.randint(1, 5) for _ in range(stages + 1)]
    ints = [(ctypes.c_int * len(values))(*values) for values in (ii, depth, fifo)]
    trace = traced(library, "run_any_chain", stages, count, *ints)
    assert region_cycles(trace) == step_chain(count, ii, depth, fifo)


@cases(
    "name, arguments, sentence",
    [
        (
            "run_greedy",
            (),
            "process 'greedy' writes stream 'pipe' 2 times in an iteration of II 1 and depth 2",
        ),
        ("run_short", (), "process 'short' declares bursts of 4 beats on bundle 3 and loads 1 fewer"),
        ("run_two_sinks", (), "stream 'pipe' is read by process 'sink' and by process 'sink'"),
        ("run_nested", (), "region 1 is inside region 11"),
        (
            "run_uneven",
            (4, 3),
            "region 12 ends, and stream 'pipe' still holds 1 elements that no process reads",
        ),
        ("run_uneven", (3, 4), "process 'sink' reads stream 'pipe' while it is empty"),
        ("run_pair", (4, 0), "stream 'pipe' needs a depth of at least 1; got 0"),
    ],
)
def test_faulty_kernel_reports_a_sentence(
    library: ctypes.CDLL, name: str, arguments: tuple[int, ...], sentence: str
) -> None:
    Trace(library).begin()
    assert sentence in (run(library, name, *arguments) or "nothing")


def test_fault_does_not_affect_the_next_trace(library: ctypes.CDLL, kernel: Run) -> None:
    Trace(library).begin()
    assert run(library, "run_two_sinks")
    assert region_cycles(kernel("run_pair", 8, 2)) == 10


def test_solve_with_bad_options_raises(library: ctypes.CDLL, kernel: Run) -> None:
    trace = kernel("run_pair", 8, 2)
    with raises(ChoiceError, what="the name of a stream", got="tube", choices=["pipe"]):
        solve(trace, depths={"tube": 4})
    with raises(RangeError, what="the depth of stream 'pipe'", got=0, low=1):
        solve(trace, depths={"pipe": 0})
    with raises(RangeError, what="efficiency", got=1.5, low=0, high=1):
        MemoryTiming(efficiency=1.5)
    trace.reset()
    with raises(StateError, subject="the trace", state="is empty"):
        solve(trace)


def test_trace_of_library_without_recorder_raises_unsupported_error(tmp_path: Path) -> None:
    path = compile_library([KERNELS], tmp_path / "native.so", our_stream())
    with raises(UnsupportedError, remedy="build it with SYSTOLIC_TRACE and the sources of hls_templates/simulation"):
        Trace(ctypes.CDLL(str(path)))


def test_timing_html_names_regions_and_processes(kernel: Run) -> None:
    text = solve(kernel("run_chain", 16, 4))._repr_html_()
    assert "<b>68 cycles</b>" in text
    assert "<td>relay</td>" in text
    assert text.count("<tr>") == 1 + 3
