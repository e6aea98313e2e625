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
BACK_WITHIN_S = 10
# Of resident memory: what allocators keep of a peak.
SLACK_MIB = 24


@dataclass
class Trial:
    """Medians over rounds. share, p99, set_up: of the victim, divided by those beside a polite neighbour or alone; None where
    they were not measured."""

    attack: str
    share: float | None = None
    p99: float | None = None
    set_up: float | None = None
    before: str = ""
    after: str = ""
    livez_asked: int = 0
    livez_failures: int = 0
    problems: list = field(default_factory=list)

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


def beside_polite(scene, idle, seconds):
    """The victim's figures alone, or beside a victim of the other pool."""
    twin = None if idle else Program(scene.left, scene.right, "b", "victim")
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
        if now.is_back(before, SLACK_MIB) or time.monotonic() > deadline:
            return now
        time.sleep(0.1)


def _attack_once(scene, attack, seconds, trial):
    """The victim's figures beside the attack; None when it did not get through."""
    scene.begin(attack)
    before = scene.footprint(attack)
    trial.before = str(before)
    figures = None
    with scene.liveness(attack) as livez:
        attacker = scene.start(attack)
        try:
            time.sleep(seconds / 2)
            figures = victim(scene, seconds)
            if figures[2] > LONGEST_SET_UP_S * 1e6:
                trial.problems.append(f"set-up took {figures[2] / 1e6:.1f} s")
            if not attacker.job.running:
                trial.problems.append(f"the attacker ended: {attacker.job.output[-200:].strip()}")
        except LabError as error:
            trial.problems.append(f"victim: {str(error).splitlines()[0]}")
        finally:
            attacker.kill()
        after = _wait_until_back(scene, attack, before)
    trial.after = str(after)
    trial.livez_asked += livez.asked
    trial.livez_failures += livez.failures
    if not scene.attacked(attack).running:
        trial.problems.append(f"the daemon ended with {scene.attacked(attack).returncode}")
    elif not after.is_back(before, SLACK_MIB):
        trial.problems.append(f"memory, descriptors or threads are not back after {BACK_WITHIN_S} s")
    if livez.failures or livez.asked == 0:
        trial.problems.append("livez")
    return figures


def run(scene, attack, rounds, seconds, short):
    """Tries the attack. A short trial has one round and judges safety only; a long one alternates with polite rounds."""
    trial = Trial(attack.name)
    polite, attacked = [], []
    for _ in range(1 if short else rounds):
        if not short:
            scene.begin(attack)
            polite.append(beside_polite(scene, attack.idle, seconds))
        figures = _attack_once(scene, attack, seconds, trial)
        if trial.problems:
            scene.restart_target(attack)
        if figures is None:
            break
        attacked.append(figures)
    if not short and len(attacked) == rounds:
        medians = [[statistics.median(column) for column in zip(*figures)] for figures in (polite, attacked)]
        trial.share, trial.p99, trial.set_up = (there / here for here, there in zip(*medians))
        if trial.share < LEAST_SHARE:
            trial.problems.append(f"share {trial.share:.2f}")
        if trial.p99 > MOST_P99:
            trial.problems.append(f"p99 {trial.p99:.1f}x")
        if trial.set_up > MOST_SET_UP:
            trial.problems.append(f"set-up {trial.set_up:.1f}x")
    trial.problems = list(dict.fromkeys(trial.problems))
    return trial
