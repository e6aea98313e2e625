// SPDX-License-Identifier: Apache-2.0
// Selective repeat per packet: the sending half with acknowledgements of many packets, both halves
// with every 20th packet lost, the receiving half alone. Congestion control is a fixed window that
// is never full. Time is CPU time.
#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "gateway/flow/receive_window.h"
#include "gateway/flow/selective_flow.h"

namespace {

using namespace rocegw::flow;  // NOLINT(google-build-using-namespace): one file, one purpose
using rocegw::Nanoseconds;
using rocegw::Psn;
using rocegw::TimePoint;

constexpr uint32_t kBytes = 4096;
constexpr TimePoint kStart{1'000'000'000};

class Sink : public AckedSink {
 public:
  void OnFrameAcked(Psn, const FrameRef& frame) override { sum += frame.offset; }
  uint64_t sum = 0;
};

SelectiveConfig Config() {
  SelectiveConfig config;
  config.cc.window_bytes = 1u << 30;
  return config;
}

// Arguments: packets in flight, packets per acknowledgement.
void BM_SendAndAck(benchmark::State& state) {
  const auto flight = static_cast<uint32_t>(state.range(0));
  const auto batch = static_cast<uint32_t>(state.range(1));
  LedgerPool pool;
  SelectiveFlow flow;
  TimePoint now = kStart;
  flow.Start(Config(), Psn(1), now);
  Sink sink;
  FrameRef frame;
  for (uint32_t i = 0; i < flight; ++i) flow.OnSent(pool, frame, kBytes, now);
  for (auto _ : state) {
    now = now + Nanoseconds(330 * batch);
    for (uint32_t i = 0; i < batch; ++i) {
      benchmark::DoNotOptimize(flow.MaySend(kBytes, now));
      frame.offset = i;
      flow.OnSent(pool, frame, kBytes, now);
    }
    flow.OnAck(pool, {.next = flow.una() + batch, .room_packets = kMaxFlowPackets}, now, sink);
  }
  benchmark::DoNotOptimize(sink.sum);
  state.SetItemsProcessed(state.iterations() * batch);
}
BENCHMARK(BM_SendAndAck)->Args({64, 1})->Args({64, 16})->Args({1000, 16})->Args({4000, 64});

// Argument: packets on the way.
void BM_BothHalvesWithLoss(benchmark::State& state) {
  const auto flight = static_cast<size_t>(state.range(0));
  LedgerPool sender_pool;
  LedgerPool receiver_pool;
  SelectiveFlow flow;
  ReceiveWindow window;
  TimePoint now = kStart;
  flow.Start(Config(), Psn(1), now);
  window.Start(Psn(1), kMaxFlowPackets);
  Sink sink;
  constexpr Psn kNothing{rocegw::kPsnMask};
  std::vector<Psn> wire(flight, kNothing);
  size_t place = 0;
  uint32_t arrivals = 0;
  std::array<uint32_t, kMaxFlowPackets / 32> words;
  for (auto _ : state) {
    now = now + Nanoseconds(330);
    Psn psn = kNothing;
    FrameRef frame;
    uint32_t bytes = 0;
    if (flow.NextLost(psn, frame, bytes)) {
      flow.OnResent(psn, now);
    } else if (flow.MaySend(kBytes, now)) {
      psn = flow.OnSent(sender_pool, frame, kBytes, now);
    }
    std::swap(psn, wire[place]);
    place = place + 1 == flight ? 0 : place + 1;
    if (psn == kNothing || ++arrivals % 20 == 0) continue;
    window.Admit(receiver_pool, psn, now);
    if (arrivals % 16 != 0) continue;
    const std::span<const uint32_t> bitmap(words.data(), window.FillBitmap(words));
    window.OnAckSent();
    flow.OnAck(sender_pool,
               {.next = window.next(), .bitmap = bitmap, .room_packets = kMaxFlowPackets}, now,
               sink);
  }
  state.SetItemsProcessed(state.iterations());
  state.counters["lost"] = benchmark::Counter(flow.lost(), benchmark::Counter::kAvgIterations);
}
BENCHMARK(BM_BothHalvesWithLoss)->Arg(100)->Arg(1000);

// Argument: packets come in order (0), by pairs in the wrong order (1), or by sixteens backwards.
void BM_Admit(benchmark::State& state) {
  const auto swap = static_cast<uint32_t>(state.range(0));
  LedgerPool pool;
  ReceiveWindow window;
  window.Start(Psn(0), kMaxFlowPackets);
  uint32_t number = 0;
  for (auto _ : state) {
    window.Admit(pool, Psn(number++ ^ swap), kStart);
    if (window.ack_due()) window.OnAckSent();
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_Admit)->Arg(0)->Arg(1)->Arg(15);

}  // namespace

BENCHMARK_MAIN();
