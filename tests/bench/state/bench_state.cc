// SPDX-License-Identifier: Apache-2.0
// What established, idle queue pairs on channels cost: bytes per table from the real structures of
// one worker, what the worker has allocated in all, and the growth of resident memory, for some
// numbers of queue pairs and peers. Then the CPU time of binding a queue pair to a channel that is
// there already, and of messages. A process for each row; programs' rings and memory are made
// before the counting begins. What is held for packets in flight is told apart: it follows them,
// not the tables.
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "tests/bench/measurement.h"
#include "tests/support/session/state_world.h"

namespace {

// Bytes that the gateway under test has asked for; what the process allocates otherwise is not
// counted, and what it frees of either is told by a mark in front of each block.
bool counting = false;
int64_t counted = 0;
constexpr size_t kMark = 16;

// `alignment`: at least that of the mark.
void* Allocate(size_t size, size_t alignment = kMark) {
  const size_t whole = (alignment + size + alignment - 1) / alignment * alignment;
  auto* const block = static_cast<uint8_t*>(std::aligned_alloc(alignment, whole));
  if (block == nullptr) std::abort();
  auto* const mark = reinterpret_cast<size_t*>(block + alignment - kMark);
  mark[0] = size;
  mark[1] = counting ? 1 : 0;
  if (counting) counted += static_cast<int64_t>(size);
  return block + alignment;
}

void Free(void* pointer, size_t alignment = kMark) {
  if (pointer == nullptr) return;
  const auto* const mark = static_cast<size_t*>(pointer) - kMark / sizeof(size_t);
  if (mark[1] != 0) counted -= static_cast<int64_t>(mark[0]);
  std::free(static_cast<uint8_t*>(pointer) - alignment);
}

}  // namespace

void* operator new(size_t size) { return Allocate(size); }
void* operator new[](size_t size) { return Allocate(size); }
void operator delete(void* pointer) noexcept { Free(pointer); }
void operator delete[](void* pointer) noexcept { Free(pointer); }
void operator delete(void* pointer, size_t) noexcept { Free(pointer); }
void operator delete[](void* pointer, size_t) noexcept { Free(pointer); }
void* operator new(size_t size, std::align_val_t alignment) {
  return Allocate(size, static_cast<size_t>(alignment));
}
void operator delete(void* pointer, std::align_val_t alignment) noexcept {
  Free(pointer, static_cast<size_t>(alignment));
}
void operator delete(void* pointer, size_t, std::align_val_t alignment) noexcept {
  Free(pointer, static_cast<size_t>(alignment));
}

namespace {

using namespace rocegw;  // NOLINT(google-build-using-namespace): one file, one purpose
using rocegw::testing::StateWorld;

struct Shape {
  uint32_t endpoints;
  uint32_t peers;
};

struct Row {
  size_t channels, objects, tables, endpoint_bytes, awake, in_flight, pooled;
  int64_t heap;      // of the worker, all of it
  int64_t resident;  // of both ends
  bool ok;
};

int64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t size = 0;
  int64_t resident = 0;
  file >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

Row Measure(const Shape& shape) {
  StateWorld world(shape.endpoints, shape.peers + 1);
  world.Watch([](bool in) { counting = in; });
  malloc_trim(0);
  const int64_t before = ResidentBytes();
  const int64_t heap = counted;
  Row row{};
  row.ok = true;
  for (uint32_t i = 0; i < shape.endpoints && row.ok; ++i)
    row.ok = world.Connect(i, i % shape.peers);
  // All of them have been in use.
  row.ok = row.ok && world.Exchange(0, shape.endpoints);
  world.Rest(Seconds(2));
  const worker::Worker::StateBytes state = world.gateway().MeasureState();
  row.heap = counted - heap;
  malloc_trim(0);
  row.resident = ResidentBytes() - before;
  row.channels = state.channels.channels;
  row.objects = state.channels.objects;
  row.tables = state.channels.tables;
  row.endpoint_bytes = state.endpoint_bytes;
  row.awake = state.channels.awake;
  row.in_flight = state.channels.in_flight;
  row.pooled = state.channels.pooled;
  row.ok = row.ok && state.endpoints == shape.endpoints && row.channels == shape.peers;
  return row;
}

// In a process of its own, so that no row finds memory that another has left.
Row MeasureApart(const Shape& shape) {
  int ends[2];
  Row row{};
  if (pipe(ends) != 0) return row;
  const pid_t child = fork();
  if (child == 0) {
    const Row measured = Measure(shape);
    const ssize_t written = write(ends[1], &measured, sizeof measured);
    _exit(written == static_cast<ssize_t>(sizeof measured) ? 0 : 1);
  }
  close(ends[1]);
  if (child < 0 || read(ends[0], &row, sizeof row) != static_cast<ssize_t>(sizeof row)) row = {};
  close(ends[0]);
  if (child > 0) waitpid(child, nullptr, 0);
  return row;
}

// Microseconds of CPU that the steps to RTR and RTS take the worker of the second and later queue
// pairs between two gateways: on the channel that is there, or as plain RoCEv2. The message that
// asks for it and its answer are part of both.
double ReadyMicroseconds(int rounds, bool native) {
  constexpr uint32_t kEndpoints = 1024;
  std::vector<double> all;
  for (int round = 0; round < rounds; ++round) {
    StateWorld world(kEndpoints, 2);
    if (!world.Connect(0, 0)) return -1;
    if (native) world.UseNative();
    double sum = 0;
    for (uint32_t i = 1; i < kEndpoints; ++i) {
      if (!world.Link(i) || !world.Modify(0, i, 0, verbs::QpState::kInit)) return -1;
      const double begin = bench::ThreadCpuSeconds();
      if (!world.Modify(0, i, 0, verbs::QpState::kRtr)) return -1;
      if (!world.Modify(0, i, 0, verbs::QpState::kRts)) return -1;
      sum += bench::ThreadCpuSeconds() - begin - bench::ThreadCpuClockCost();
    }
    all.push_back(sum / (kEndpoints - 1) * 1e6);
  }
  return bench::Median(all);
}

// Microseconds of CPU that a SEND and a WRITE each way take both workers and whoever steps them, on
// one channel, with all packets and completions: for comparing two builds. Queue pair after queue
// pair: many do not fit into the processor's cache.
double ExchangeMicroseconds(int rounds, uint32_t endpoints) {
  const uint32_t turns = std::max(8192 / endpoints, 2u);
  StateWorld world(endpoints, 2);
  for (uint32_t i = 0; i < endpoints; ++i)
    if (!world.Connect(i, 0)) return -1;
  if (!world.Exchange(0, endpoints)) return -1;
  std::vector<double> all;
  for (int round = 0; round < rounds; ++round) {
    const double begin = bench::ThreadCpuSeconds();
    for (uint32_t i = 0; i < turns; ++i) {
      if (!world.Exchange(0, endpoints)) return -1;
    }
    all.push_back((bench::ThreadCpuSeconds() - begin) / turns / endpoints * 1e6);
  }
  return bench::Median(all);
}

struct HandOverCost {
  double write_us, read_us;  // of CPU, of each queue pair
  double bytes;
};

// Hand-over of a worker with established queue pairs, with nothing in flight, to a fresh worker
// that is linked with the same objects.
std::optional<HandOverCost> MeasureHandOver(int rounds, uint32_t endpoints, bool native) {
  StateWorld world(endpoints, 2);
  if (native) world.UseNative();
  for (uint32_t i = 0; i < endpoints; ++i)
    if (!world.Connect(i, 0)) return std::nullopt;
  std::vector<double> write, read;
  HandOverCost cost{};
  for (int round = 0; round < rounds; ++round) {
    if (!world.Exchange(0, endpoints)) return std::nullopt;
    const auto times = world.HandOver();
    if (!times) return std::nullopt;
    write.push_back(times->write_seconds / endpoints * 1e6);
    read.push_back(times->read_seconds / endpoints * 1e6);
    cost.bytes = static_cast<double>(times->bytes) / endpoints;
  }
  cost.write_us = bench::Median(write);
  cost.read_us = bench::Median(read);
  return cost;
}

double KiB(int64_t bytes) { return static_cast<double>(bytes) / 1024; }

}  // namespace

int main(int argc, char** argv) {
  const bench::Arguments arguments = bench::ParseArguments(argc, argv, 5);
  std::printf("%s\n", bench::Machine().c_str());
  std::printf(
      "KiB of one worker; queue pairs established, each used once, idle for two seconds; RSS is "
      "that "
      "of "
      "both ends\n");
  std::printf("%9s %6s | %9s %8s %10s %9s | %6s %9s %7s | %10s %9s\n", "endpoints", "peers",
              "channels", "tables", "endpoints", "transport", "awake", "in flight", "pooled",
              "all heap", "RSS");
  std::string json = "{\"rows\": [";
  bool ok = true;
  const Shape shapes[] = {{1, 1},      {1024, 1},    {2048, 1},    {512, 512},
                          {1024, 512}, {1024, 1024}, {2048, 1024}, {10240, 512}};
  for (const Shape& shape : shapes) {
    const Row row = MeasureApart(shape);
    ok = ok && row.ok;
    const auto transport = static_cast<int64_t>(row.objects + row.tables + row.endpoint_bytes);
    std::printf("%9u %6u | %9.1f %8.1f %10.1f %9.1f | %6.1f %9.1f %7.1f | %10.1f %9.1f%s\n",
                shape.endpoints, shape.peers, KiB(static_cast<int64_t>(row.objects)),
                KiB(static_cast<int64_t>(row.tables)),
                KiB(static_cast<int64_t>(row.endpoint_bytes)), KiB(transport),
                KiB(static_cast<int64_t>(row.awake)), KiB(static_cast<int64_t>(row.in_flight)),
                KiB(static_cast<int64_t>(row.pooled)), KiB(row.heap), KiB(row.resident),
                row.ok ? "" : "  FAILED");
    json += std::string(&shape == shapes ? "" : ", ") +
            "{\"endpoints\": " + std::to_string(shape.endpoints) +
            ", \"peers\": " + std::to_string(shape.peers) +
            ", \"channel_bytes\": " + std::to_string(row.objects + row.tables) +
            ", \"endpoint_bytes\": " + std::to_string(row.endpoint_bytes) +
            ", \"awake_bytes\": " + std::to_string(row.awake) +
            ", \"pooled_bytes\": " + std::to_string(row.pooled) +
            ", \"heap_bytes\": " + std::to_string(row.heap) +
            ", \"resident_bytes\": " + std::to_string(row.resident) + "}";
  }
  const double channel = ReadyMicroseconds(arguments.rounds, false);
  const double native = ReadyMicroseconds(arguments.rounds, true);
  ok = ok && channel >= 0 && native >= 0;
  std::string exchanges;
  for (const uint32_t endpoints : {1u, 1024u, 4096u}) {
    const double exchange = ExchangeMicroseconds(arguments.rounds, endpoints);
    ok = ok && exchange >= 0;
    std::printf(
        "a SEND and a WRITE each way, %u queue pairs in turn: %.2f us of CPU at both ends "
        "together\n",
        endpoints, exchange);
    exchanges += ", \"exchange_" + std::to_string(endpoints) + "_us\": " + std::to_string(exchange);
  }
  for (const bool plain : {false, true}) {
    constexpr uint32_t kHandedOver = 8192;
    const auto cost = MeasureHandOver(arguments.rounds, kHandedOver, plain);
    ok = ok && cost;
    if (!cost) continue;
    const std::string path = plain ? "native" : "channel";
    std::printf(
        "hand-over of a worker with %u queue pairs, %s: %.2f us to write, %.2f us to read, %.0f "
        "bytes each\n",
        kHandedOver, path.c_str(), cost->write_us, cost->read_us, cost->bytes);
    exchanges += ", \"hand_over_" + path + "_write_us\": " + std::to_string(cost->write_us) +
                 ", \"hand_over_" + path + "_read_us\": " + std::to_string(cost->read_us);
  }
  std::printf(
      "a later queue pair from INIT to RTS: %.2f us of CPU on the channel, %.2f us as plain "
      "RoCEv2\n",
      channel, native);
  json += "], \"ready_on_channel_us\": " + std::to_string(channel) +
          ", \"ready_native_us\": " + std::to_string(native) + exchanges + "}\n";
  bench::WriteJson(arguments, json);
  return ok ? 0 : 1;
}
