# SPDX-License-Identifier: Apache-2.0
"""Canary workload of a migration: writes items with a sequence number and a checksum, reads others back and compares. Its status
file begins with "intact" until an item is not as it was acknowledged, or an operation fails."""

import os
import random
import signal
import time


class Canary:
    """names: of the items. content(name, sequence): what an item holds. write(name, content), read(name, length): the storage."""

    def __init__(self, status, names, content, write, read):
        self.status = status
        self.names = names
        self.content = content
        self.put, self.get = write, read
        self.journal = {}  # item to the sequence number that was acknowledged last
        self.writes = self.reads = 0
        self.longest = 0.0

    def say(self, word, more=""):
        with open(self.status + ".new", "w", encoding="ascii") as file:
            file.write(f"{word}: {self.writes} writes, {self.reads} reads compared, longest {self.longest * 1000:.0f} ms{more}\n")
        os.replace(self.status + ".new", self.status)

    def timed(self, operation, *arguments):
        began = time.monotonic()
        result = operation(*arguments)
        self.longest = max(self.longest, time.monotonic() - began)
        return result

    def write(self, sequence):
        name = random.choice(self.names)
        self.timed(self.put, name, self.content(name, sequence))
        self.journal[name] = sequence
        self.writes += 1

    def compare(self, name):
        expected = self.content(name, self.journal[name])
        if self.timed(self.get, name, len(expected)) != expected:
            raise ValueError(f"{name} is not as written with number {self.journal[name]}")
        self.reads += 1

    def run(self, errors, every=1, pause=0.0):
        """Works until SIGTERM, then compares every item once more. Returns the exit status. errors: exceptions of the storage.
        every: writes from one status to the next. pause: seconds behind each write."""
        ended = []
        signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
        sequence = 0
        try:
            while not ended:
                sequence += 1
                self.write(sequence)
                self.compare(random.choice(sorted(self.journal)))
                if sequence % every == 1 % every:
                    self.say("intact")
                time.sleep(pause)
            for name in sorted(self.journal):
                self.compare(name)
            self.say("intact")
        except (errors, ValueError) as error:
            self.say("broken", f", {error}")
            return 1
        return 0
