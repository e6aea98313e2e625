# SPDX-License-Identifier: Apache-2.0
"""One attack beside a program that behaves, and the judgement on it."""

import statistics
import time
from dataclasses import asdict, dataclass, field

from netlab.job import LabError
from netlab.neighbours import Program

LEAST_SHARE, MOST_P99, MOST_SET_UP = 0.9, 2.0, 2.0
# A victim that waits longer waits for a thread that is blocked, on any machine; judged in short trials, too.
LONGEST_SET_UP_S = 5
# Messages a second of a victim that is not starved, on any machine; thousands are usual.
FEWEST_MESSAGES = 100
BACK_WITHIN_S = 10
# More threads of the daemon than before: the noise's pool has at most 32 sessions (scene.py), with a thread each.
MOST_THREADS = 48
# Of resident memory: what allocators keep of a peak.
SLACK_MIB = 24
# Of a controller: gRPC's pool keeps a few idle threads for longer.
SLACK_THREADS = {"gateway": 0, "controller": 4}


@dataclass
class Trial:
    """Medians over the rounds, of which there are `rounds`. share, p99, set_up: of the victim, divided by those of
    beside_polite; None where they were not measured."""

    attack: str
    share: float | None = None
    p99: float | None = None
    set_up: float | None = None
    before: str = ""
    after: str = ""
    growth_mib: float = 0
    livez_asked: int = 0
    livez_failures: int = 0
    problems: list = field(default_factory=list)
    tries: int = 1
    rounds: int = 0

    @property
    def verdict(self):
        return "held" if not self.problems else "; ".join(self.problems)

    def as_json(self):
        return {**asdict(self), "verdict": self.verdict}


def victim(scene, seconds):
    """(messages a second, p99 in microseconds, set-up time in microseconds) of a program that behaves."""
    program = Program(scene.left, scene.right, "a", "victim")
    try:
        program.job.expect("set_up_us", 30)
        time.sleep(seconds)
        program.end(15)
    finally:
        program.kill()
    return program.figures()


def beside_polite(scene, attack, seconds):
    """The victim's figures alone, beside a victim of the other pool, or beside a flood of packets that reach nobody."""
    if attack.floods:
        flood = scene.start_flood_elsewhere(attack)
        try:
            return victim(scene, seconds)
        finally:
            flood.kill()
    twin = None if attack.idle else Program(scene.left, scene.right, "b", "victim")
    if twin:
        twin.job.expect("set_up_us", 30)
    figures = victim(scene, seconds)
    if twin:
        twin.end(15)
    return figures


def _wait_until_back(scene, attack, before):
    """The footprint when it is back to `before`, or after BACK_WITHIN_S."""
    deadline = time.monotonic() + BACK_WITHIN_S
    while True:
        now = scene.footprint(attack)
        if now.is_back(before, SLACK_MIB, SLACK_THREADS[attack.target]) or time.monotonic() > deadline:
            return now
        time.sleep(0.1)


def _ask_controller(scene):
    """Seconds until an administrator's question is answered."""
    began = time.monotonic()
    scene.controller.ctl("get", "gateways")
    return time.monotonic() - began


def _frames(scene):
    return scene.right.counters().get("rocegw_channel_rx_packets_total", 0)


def _beside(scene, attack, seconds, trial, observed):
    """The victim's figures while the attacker runs; None when the victim did not get through."""
    attacker = scene.start(attack, observed.known if observed else ())
    try:
        if attack.fresh_peer:
            scene.renew_peer()
        else:
            time.sleep(seconds / 2)
        before = _frames(scene)
        figures = victim(scene, seconds)
        if figures[2] > LONGEST_SET_UP_S * 1e6:
            trial.problems.append(f"set-up took {figures[2] / 1e6:.1f} s")
        if figures[0] < FEWEST_MESSAGES:
            trial.problems.append(f"the victim had {figures[0]:.0f} messages a second")
        if attack.fresh_peer and _frames(scene) == before:
            trial.problems.append("the victim got no channel")
        if observed:
            observed.end()
        if attack.target == "controller" and (took := _ask_controller(scene)) > LONGEST_SET_UP_S:
            trial.problems.append(f"the controller answered after {took:.1f} s")
        if not attacker.job.running:
            trial.problems.append(f"the attacker ended: {attacker.job.output[-200:].strip()}")
        return figures
    except LabError as error:
        trial.problems.append(f"victim: {' | '.join(str(error).split(chr(10)))[-600:]}")
        return None
    finally:
        attacker.kill()


def _attack_once(scene, attack, seconds, trial):
    """The victim's figures beside the attack; None when the victim did not get through."""
    scene.begin(attack)
    before = scene.footprint(attack)
    trial.before = str(before)
    with scene.liveness(attack) as livez, scene.growth(attack) as growth:
        observed = scene.observed(attack) if attack.knows else None
        figures = _beside(scene, attack, seconds, trial, observed)
        after = _wait_until_back(scene, attack, before)
    trial.after = str(after)
    trial.growth_mib = max(trial.growth_mib, growth.most_mib)
    trial.livez_asked += livez.asked
    trial.livez_failures += livez.failures
    if not scene.attacked(attack).running:
        trial.problems.append(f"the daemon ended with {scene.attacked(attack).returncode}")
    elif not after.is_back(before, SLACK_MIB, SLACK_THREADS[attack.target]):
        trial.problems.append(f"memory, descriptors or threads are not back after {BACK_WITHIN_S} s")
    if growth.most_mib > attack.growth_mib:
        trial.problems.append(f"the daemon took {growth.most_mib:.0f} MiB")
    if growth.most_threads > MOST_THREADS:
        trial.problems.append(f"the daemon had {growth.most_threads} threads more")
    if livez.failures or livez.asked == 0:
        trial.problems.append("livez")
    return figures


def _judge(trial, polite, attacked):
    """What the figures miss, by medians over the rounds."""
    medians = [[statistics.median(column) for column in zip(*figures)] for figures in (polite, attacked)]
    trial.share, trial.p99, trial.set_up = (there / here for here, there in zip(*medians))
    if trial.share < LEAST_SHARE:
        yield f"share {trial.share:.2f}"
    if trial.p99 > MOST_P99:
        yield f"p99 {trial.p99:.1f}x"
    if trial.set_up > MOST_SET_UP:
        yield f"set-up {trial.set_up:.1f}x"


def run(scene, attack, rounds, seconds, short):
    """Tries the attack. A short trial has one round and judges safety only; a long one alternates with polite rounds. Where
    only its figures miss, more rounds are added once, and all are judged: another program of the machine may have been it."""
    trial = Trial(attack.name)
    seconds = max(seconds, attack.least_s)
    polite, attacked, missed = [], [], []
    for more in (1,) if short else (rounds, rounds + 2):
        for _ in range(more):
            if not short:
                scene.begin(attack)
                polite.append(beside_polite(scene, attack, seconds))
            figures = _attack_once(scene, attack, seconds, trial)
            if trial.problems:
                scene.restart_target(attack)
            if figures is None:
                trial.problems = list(dict.fromkeys(trial.problems))
                return trial
            attacked.append(figures)
        missed = [] if short else list(_judge(trial, polite, attacked))
        if trial.problems or not missed:
            break
    trial.rounds = len(attacked)
    trial.problems = list(dict.fromkeys(trial.problems + missed))
    return trial
