// SPDX-License-Identifier: Apache-2.0
// Sends forged packets to production objects and prints how many an attacker needs per change of
// their state. Every row must agree with arithmetic, else the program ends with status 1: a row
// for which 2^48 packets or more are due fails with the first change, one with fewer when chance
// explains its changes less than once in 10^9 runs, and a row that changes with every packet fails
// when one packet changes nothing (the proof that the program sees changes). A row that is cheaper
// than the same attack on an RNIC fails too, where an RNIC has that attack.
//
// scripts/lib/bench/forge.py runs it in pieces and adds them up.
//
// Usage: bench_forge [--count N] [--seed S] [--csv FILE] [--only TEXT]. --count: packets of each
// row; rows that change with every packet get 200 at most. --only: rows whose packet is TEXT.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/bench/forge/attack.h"
#include "tests/bench/measurement.h"

namespace rocegw::bench {
namespace {

struct Options {
  uint64_t count = 100000;
  uint64_t seed = 1;
  std::string csv;
  std::string only;
};

Options Parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : nullptr;
    if (value != nullptr && name == "--count") {
      options.count = std::strtoull(value, nullptr, 10);
    } else if (value != nullptr && name == "--seed") {
      options.seed = std::strtoull(value, nullptr, 10);
    } else if (value != nullptr && name == "--csv") {
      options.csv = value;
    } else if (value != nullptr && name == "--only") {
      options.only = value;
    } else {
      std::fprintf(stderr, "usage: %s [--count N] [--seed S] [--csv FILE] [--only TEXT]\n",
                   argv[0]);
      std::exit(2);
    }
  }
  return options;
}

std::string PowerOf(double bits) {
  if (bits == kNothing) return "-";
  if (bits == kNever) return "never";
  if (bits == 0) return "1";
  return "2^" + std::to_string(static_cast<int>(bits));
}

std::string TextOf(const Outcome& outcome) {
  std::string text;
  for (size_t i = 0; i < outcome.changes.size(); ++i) {
    if (outcome.changes[i] == 0) continue;
    text += (text.empty() ? "" : ", ") + std::to_string(outcome.changes[i]) + " " +
            NameOf(static_cast<Change>(i));
  }
  return text.empty() ? "none" : text;
}

int Main(int argc, char** argv) {
  const Options options = Parse(argc, argv);
  FILE* csv = options.csv.empty() ? nullptr : std::fopen(options.csv.c_str(), "w");
  if (!options.csv.empty() && csv == nullptr) {
    std::perror(options.csv.c_str());
    return 1;
  }
  if (csv != nullptr)
    std::fprintf(csv,
                 "seed,target,packet,knows,bits,rnic,tcp,sent,changes,answered,kinds,seconds\n");
  std::printf("%s\nseed %llu\n", Machine().c_str(), static_cast<unsigned long long>(options.seed));
  std::printf("%-12s %-27s %-27s %10s %9s %-8s %-8s %-8s %5s  %s\n", "target", "packet",
              "the attacker knows", "sent", "answered", "expected", "RNIC", "TCP", "M/s",
              "changes seen");
  int failed = 0;
  uint64_t total = 0;
  double seconds = 0;
  for (const auto& part : {NativeAttacks(), ChannelAttacks(), ConnectionAttacks()}) {
    for (const Attack& attack : part) {
      if (!options.only.empty() && options.only != attack.packet) continue;
      testing::Random random(options.seed);
      const uint64_t count =
          attack.expected.bits == 0 ? std::min<uint64_t>(options.count, 200) : options.count;
      const double begin = ThreadCpuSeconds();
      const Outcome outcome = attack.run(count, random);
      const double took = ThreadCpuSeconds() - begin;
      const char* verdict = "";
      if (!Agrees(attack, outcome)) verdict = "  <- NOT AS EXPECTED";
      if (attack.cheaper_than_rnic()) verdict = "  <- NOT AS EXPECTED: cheaper than on an RNIC";
      failed += *verdict == '\0' ? 0 : 1;
      total += outcome.sent;
      seconds += took;
      std::printf("%-12s %-27s %-27s %10llu %9llu %-8s %-8s %-8s %5.2f  %s%s\n", attack.target,
                  attack.packet, attack.knows, static_cast<unsigned long long>(outcome.sent),
                  static_cast<unsigned long long>(outcome.answered),
                  PowerOf(attack.expected.bits).c_str(), PowerOf(attack.expected.rnic).c_str(),
                  PowerOf(attack.expected.tcp).c_str(),
                  static_cast<double>(outcome.sent) / took / 1e6, TextOf(outcome).c_str(), verdict);
      std::fflush(stdout);
      if (csv != nullptr)
        std::fprintf(csv, "%llu,%s,\"%s\",\"%s\",%g,%g,%g,%llu,%llu,%llu,\"%s\",%.3f\n",
                     static_cast<unsigned long long>(options.seed), attack.target, attack.packet,
                     attack.knows, attack.expected.bits, attack.expected.rnic, attack.expected.tcp,
                     static_cast<unsigned long long>(outcome.sent),
                     static_cast<unsigned long long>(outcome.changed()),
                     static_cast<unsigned long long>(outcome.answered), TextOf(outcome).c_str(),
                     took);
    }
  }
  std::printf("%.4g packets, %.2f million per second of processor time\n",
              static_cast<double>(total), static_cast<double>(total) / seconds / 1e6);
  if (csv != nullptr) std::fclose(csv);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace rocegw::bench

int main(int argc, char** argv) { return rocegw::bench::Main(argc, argv); }
