"""This gateway, nginx and other gateways side by side in one run: see README.md.

.venv/bin/python benchmarks/compare.py --quick
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # it is run as a file

from benchmarks import machine, nginx, ours, peers, plot, report
from benchmarks.contestant import Contestant, DidNotStartError, Plan
from benchmarks.loads import Loader, LoadFailedError
from benchmarks.measurements import Bench, Measurement, measurements
from benchmarks.summary import Record
from benchmarks.workshop import MissingToolError, Upstreams, compile_tool, upstreams
from gateway.__about__ import ENV_PREFIX


def main() -> int:
    options = parser().parse_args()
    _set_the_stage()
    with tempfile.TemporaryDirectory(prefix="benchmark-") as name:
        folder = Path(name)
        try:
            return compare(options, folder)
        except MissingToolError as missing:
            print(missing, file=sys.stderr)
            return 2


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="compare.py", description="Measure this gateway, nginx and installed peers side by side in one run."
    )
    add = made.add_argument
    add("--quick", action="store_true", help="two rounds of two seconds, 500 streams only")
    add("--rounds", type=int, help="rounds (default 3)")
    add("--seconds", type=int, help="seconds a load takes (default 3)")
    add("--rate", type=float, default=100.0, help="requests a second of the fixed rate (default %(default)s)")
    add("--streams", help="streams at a time (default 500,1000,2000)")
    add("--peer", action="append", metavar="NAME", help=f"only these peers, or none: {', '.join(peers.described())}")
    add("--peers", action="append", type=Path, default=[], metavar="FOLDER", help="where peers are installed")
    add("--workers", type=int, default=4, help="also measure with as many workers; 1: do not (default %(default)s)")
    add("--only", action="append", metavar="MEASUREMENT", help="only these measurements, such as request or event")
    add("--gateway-cpus", default="0", help="cores for the gateways (default %(default)s)")
    add("--load-cpus", default="1", help="cores for the mock and the load (default %(default)s)")
    add("--port", type=int, default=21_800, help="first of the ports the gateways take (default %(default)s)")
    add("--no-wrk", action="store_true", help="make all load with the program of our own")
    add("--json", type=Path, metavar="FILE", help="write everything that was measured")
    add("--plot", type=Path, metavar="FILE", help="draw the ratios (.png or .svg; needs matplotlib)")
    return made


def compare(options: argparse.Namespace, folder: Path) -> int:
    """Measure, print, write."""
    gateway_cpus, load_cpus = cores(options.gateway_cpus), cores(options.load_cpus)
    wrk = None if options.no_wrk else shutil.which("wrk")
    loader = Loader(compile_tool("load", folder), wrk, load_cpus, folder)
    with upstreams(folder, load_cpus) as ups, contextlib.ExitStack() as stack:
        plans = list(contestants(options, folder, ups))
        facts = machine.about(ours.ROOT, {plan.name: plan.version for plan in plans if plan.version})
        facts |= {"load_by": "wrk and our own" if wrk else "our own (wrk is not installed)"}
        say(machine.told(facts))
        running = list(started(plans, folder, gateway_cpus, stack))
        records = {contestant.name: Record(contestant.name) for contestant in running}
        seconds = options.seconds or (2 if options.quick else 3)
        bench = Bench(loader, ups.port, float(seconds), options.rate)
        counts = options.streams or ("500" if options.quick else "500,1000,2000")
        steps = [
            step
            for step in measurements(tuple(int(count) for count in counts.split(",")))
            if not options.only or step.name in options.only
        ]
        for round_number in range(options.rounds or (2 if options.quick else 3)):
            for step in steps:
                if step.once and round_number:
                    continue
                say(f"round {round_number + 1}: {step.name}")
                for contestant in running:
                    measure(bench, step, contestant, records[contestant.name])
    facts["load_after"] = machine.load_average()
    publish(list(records.values()), facts, options)
    return 0


def contestants(options: argparse.Namespace, folder: Path, ups: Upstreams) -> Iterator[Plan]:
    """nginx, this gateway in its forms, and the peers that are there."""
    port = options.port
    reference = nginx.plan(folder, port, ups)
    if reference is None:
        say("nginx is not installed: there will be no ratios")
    else:
        yield reference
    yield ours.plain(folder, port + 1, ups)
    yield ours.full(folder, port + 2, ups)
    if options.workers > 1:
        yield ours.workers(folder, port + 3, ups, options.workers)
    wanted = [name for name in options.peer if name != "none"] if options.peer else list(peers.described())
    for place, name in enumerate(wanted):
        plan = peers.plan(name, folder, port + 4 + place, ups, options.peers)
        if plan is None:
            say(f"{name} is not installed (--peers FOLDER)")
        else:
            yield plan


def started(plans: Sequence[Plan], folder: Path, cpus: set[int], stack: contextlib.ExitStack) -> Iterator[Contestant]:
    """Those of *plans* that give an answer, each paused again."""
    for plan in plans:
        try:
            contestant = Contestant(plan, folder, cpus)
        except DidNotStartError as failed:
            say(str(failed))
            continue
        stack.callback(contestant.process.stop)
        say(f"{plan.name}: first answer after {contestant.start_seconds:.2f} s")
        contestant.settle()
        contestant.process.pause()
        yield contestant


def measure(bench: Bench, step: Measurement, contestant: Contestant, record: Record) -> None:
    """Let *contestant* run for one step, and note what it gave."""
    if not contestant.has(step.via) or (contestant.plan.only is not None and step.name not in contestant.plan.only):
        return
    contestant.process.resume()
    try:
        contestant.settle()
        outcome = step.run(bench, contestant)
    except LoadFailedError as failed:
        record.remark(f"{step.name}: {failed}")
        return
    finally:
        contestant.process.pause()
    record.add(outcome.values)
    if outcome.wrong:
        record.doubtful.update(outcome.values)
    if outcome.remark:
        record.remark(f"{step.name}: {outcome.remark}")


def publish(records: list[Record], facts: dict[str, object], options: argparse.Namespace) -> None:
    """The table to standard output, the rest where it is wanted."""
    print(f"{machine.told(facts)}\n")
    print(report.table(records, nginx.NAME, ours=ours.PLAIN, full=ours.FULL))
    if found := report.remarks(records):
        print(f"\n{found}")
    if options.json:
        options.json.write_text(json.dumps(report.document(records, nginx.NAME, facts), indent=1) + "\n")
    if options.plot:
        try:
            plot.plot(records, nginx.NAME, options.plot, f"{facts['date']}, {facts['cpu']}")
        except plot.NoMatplotlibError as missing:
            say(str(missing))


def cores(text: str) -> set[int]:
    """``0,2`` as a set; those that the machine has."""
    wanted = {int(part) for part in text.split(",")}
    return (wanted & os.sched_getaffinity(0)) or os.sched_getaffinity(0)


def say(text: str) -> None:
    """Progress, beside the table."""
    print(text, file=sys.stderr, flush=True)


def _set_the_stage() -> None:
    """What all processes inherit: no settings of another gateway, and descriptors for thousands of streams."""
    for name in [name for name in os.environ if name.startswith(ENV_PREFIX)]:
        del os.environ[name]
    # Where Python keeps nothing that it compiled, each start is that of a fresh installation.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


if __name__ == "__main__":
    sys.exit(main())
