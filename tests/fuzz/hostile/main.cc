// SPDX-License-Identifier: Apache-2.0
// A hostile program against a gateway, with so many spoiled descriptors:
//   fuzz_hostile [--racing] [--descriptors N] [--seed S]
// --racing: a thread changes the descriptors while workers read them.
// Half of them with queue pairs that share channels, half as plain RoCEv2. Prints what was done and
// how it ended; exit status 0 when everything was as it must be.
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "tests/fuzz/hostile/hostile_world.h"

namespace rocegw::testing {
namespace {

void Print(const HostileWorld& world) {
  const HostileFigures& figures = world.figures();
  std::printf("  descriptors %" PRIu64 " (%" PRIu64 " of sends, %" PRIu64
              " of receives) in %" PRIu64 " batches\n",
              figures.descriptors(), figures.sends, figures.receives, figures.batches);
  if (figures.raced != 0) std::printf("  changes while workers read %" PRIu64 "\n", figures.raced);
  std::printf("  indices %" PRIu64 ", doorbell pages %" PRIu64 ", other bytes %" PRIu64
              ", messages %" PRIu64 ", by %" PRIu64 " rings %" PRIu64
              ", most events that waited %" PRIu64 "\n",
              figures.indices, figures.doorbells, figures.bytes_elsewhere, figures.messages,
              figures.rings, figures.ring_messages, figures.most_events);
  std::printf("  refused when read %" PRIu64 ", sessions ended %" PRIu64
              ", connections refused %" PRIu64 ", good messages %" PRIu64
              ", messages by XRC %" PRIu64 ", by endpoints %" PRIu64 " with %" PRIu64
              " changes of their states\n",
              figures.refused_when_read, figures.sessions_ended, figures.connections_refused,
              figures.good_messages, figures.by_xrc, figures.by_endpoint, figures.endpoint_moves);
  for (const auto& [status, count] : figures.completions)
    std::printf("  completions with status %u: %" PRIu64 "\n", status, count);
  for (const auto& [said, count] : figures.ends)
    std::printf("  logged %" PRIu64 " times:%s\n", count, said.c_str());
  std::printf("%s", world.Counters().c_str());
  std::fflush(stdout);
}

bool Run(uint64_t descriptors, uint64_t seed, bool channels, Descriptions descriptions) {
  std::printf("%s, seed %" PRIu64 "\n", channels ? "channels" : "plain RoCEv2", seed);
  std::fflush(stdout);
  HostileWorld world(seed, channels, descriptions);
  bool good = true;
  uint64_t told = 0;
  try {
    while (world.figures().descriptors() < descriptors) {
      world.Batch();
      if (world.figures().descriptors() / 1000000 == told) continue;
      told = world.figures().descriptors() / 1000000;
      std::printf("  %" PRIu64 " million\n", told);
      std::fflush(stdout);
    }
    world.LookForLeaks();
    // A queue that stopped taking descriptors would meet every other condition.
    if (world.figures().by_xrc * 1000 < world.figures().descriptors())
      throw std::runtime_error("next to nothing arrives by XRC");
    if (world.figures().ring_messages * 100 < world.figures().descriptors())
      throw std::runtime_error("next to nothing is put into rings");
    if (channels && world.figures().by_endpoint * 1000 < world.figures().descriptors())
      throw std::runtime_error("next to nothing arrives at endpoints");
  } catch (const std::runtime_error& error) {
    std::printf("FAIL in batch %" PRIu64 ": %s\n", world.figures().batches, error.what());
    good = false;
  }
  Print(world);
  return good;
}

}  // namespace
}  // namespace rocegw::testing

int main(int argc, char** argv) {
  using rocegw::testing::Descriptions;
  uint64_t descriptors = 100000;
  uint64_t seed = 1;
  Descriptions descriptions = Descriptions::kSettled;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--racing") == 0) descriptions = Descriptions::kRacing;
    if (i + 1 == argc) break;
    if (std::strcmp(argv[i], "--descriptors") == 0)
      descriptors = std::strtoull(argv[i + 1], nullptr, 0);
    if (std::strcmp(argv[i], "--seed") == 0) seed = std::strtoull(argv[i + 1], nullptr, 0);
  }
  const bool native = rocegw::testing::Run(descriptors / 2, seed, false, descriptions);
  const bool channels =
      rocegw::testing::Run(descriptors - descriptors / 2, seed, true, descriptions);
  return native && channels ? 0 : 1;
}
