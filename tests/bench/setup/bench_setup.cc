// SPDX-License-Identifier: Apache-2.0
// How long a gateway works on setting up a queue pair: create, INIT, RTR, RTS, out of a pool that
// keeps queue pairs ready and out of one that does not, in turns. A session server with a thread of
// its own and real workers, as in rocegwd, and a program that speaks the attach protocol over a
// real socket. Counted is the gateway's side: for each of the four requests from the moment it was
// read until its answer was sent, waiting for workers included. What the program sees, from its
// first request to its last answer, is printed beside it.
#include <sched.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "gateway/metrics/duration_histogram.h"
#include "tests/bench/measurement.h"
#include "tests/support/session/worker_host.h"

namespace rocegw::testing {
namespace {

constexpr size_t kWorkers = 1;
constexpr uint32_t kReady = 64;
constexpr uint32_t kDepth = 128;  // perftest's
constexpr int kPerRound = 200;
constexpr const char* kPools[] = {"tenants/t/pools/off", "tenants/t/pools/on"};
constexpr const char* kModes[] = {"reserve off", "reserve on"};

struct Result {
  std::vector<double> gateway;  // microseconds
  std::vector<double> program;
  metrics::DurationHistogram histogram;
};

class Bench {
 public:
  Bench() {
    for (size_t mode = 0; mode < 2; ++mode) {
      tenant::PoolSettings pool;
      pool.name = kPools[mode];
      pool.trusted = true;
      pool.ready_qps = mode == 0 ? 0 : kReady;
      host_.SetPool(pool);
    }
    host_.StartControl();
  }

  // Of a program that is there already; it destroys the queue pair afterwards.
  void Same(size_t mode, Result& result) {
    if (!programs_[mode].client) {
      WaitUntilFull();
      programs_[mode] = host_.Begin(kPools[mode]);
    }
    WaitUntilFull();
    const uint32_t qp = SetUp(mode, programs_[mode], result);
    programs_[mode].client->Object(ROCEGW_MSG_DESTROY_QP, qp);
  }
  // The first one of a program.
  void First(size_t mode, Result& result) {
    WaitUntilFull();
    auto program = host_.Begin(kPools[mode]);
    SetUp(mode, program, result);
  }
  // Queue pairs of the pool with a reserve that did not come out of it.
  uint64_t Misses() {
    uint64_t misses = 0;
    host_.OnControl([&] { misses = Reserve().misses(); });
    return misses;
  }

 private:
  tenant::Pool& Pool(size_t mode) { return *host_.server->services().pools.FindPool(kPools[mode]); }
  session::ReadyReserve& Reserve() { return *host_.server->reserves().Of(Pool(1)); }
  void WaitUntilFull() {
    for (bool full = false; !full; ::sched_yield()) {
      host_.OnControl([&] {
        full = Reserve().ready() == kReady && Reserve().bytes() == tenant::ReserveBytes(kReady);
      });
    }
  }
  int64_t Spent(size_t mode) {
    int64_t spent = 0;
    host_.OnControl([&] { spent = Pool(mode).set_up().sum_ns(); });
    return spent;
  }
  uint32_t SetUp(size_t mode, WorkerHost::Program& program, Result& result) {
    const int64_t before = Spent(mode);
    const double begin = bench::Seconds();
    const auto qp = program.client->CreateQp(program.pd, program.cq, ROCEGW_QPT_RC, kDepth);
    if (program.client->error() != 0 || WorkerHost::Connect(*program.client, qp.handle) != 0)
      std::abort();
    result.program.push_back((bench::Seconds() - begin) * 1e6);
    const int64_t spent = Spent(mode) - before;
    result.gateway.push_back(static_cast<double>(spent) * 1e-3);
    result.histogram.Add(Nanoseconds(spent));
    return qp.handle;
  }

  WorkerHost host_{kWorkers, {}, true};
  std::array<WorkerHost::Program, 2> programs_;
};

void PrintHistograms(const std::array<Result, 2>& results) {
  std::printf("    %-12s %12s %12s\n", "up to", kModes[0], kModes[1]);
  const auto& bounds = metrics::DurationHistogram::kBounds;
  for (size_t i = 0; i < bounds.size(); ++i) {
    const uint64_t off = results[0].histogram.counts()[i];
    const uint64_t on = results[1].histogram.counts()[i];
    if (off + on == 0) continue;
    std::printf("    %9.0f us %12llu %12llu\n", static_cast<double>(bounds[i]) * 1e-3,
                static_cast<unsigned long long>(off), static_cast<unsigned long long>(on));
  }
}

int Main(int argc, char** argv) {
  const bench::Arguments arguments = bench::ParseArguments(argc, argv, 9);
  std::printf(
      "%s\n%zu worker, %u ready, queues of %u, %d set-ups of each kind in each of %d rounds\n",
      bench::Machine().c_str(), kWorkers, kReady, kDepth, kPerRound, arguments.rounds);
  Bench bench;
  std::string json = "[";
  const struct {
    const char* name;
    void (Bench::*one)(size_t, Result&);
  } kinds[] = {{"again and again in one program", &Bench::Same},
               {"first of a new program", &Bench::First}};
  for (const auto& kind : kinds) {
    std::array<Result, 2> results;
    for (int i = 0; i < arguments.rounds * kPerRound; ++i) {
      for (size_t mode = 0; mode < 2; ++mode) (bench.*kind.one)(mode, results[mode]);
    }
    const double off = bench::Median(results[0].gateway);
    const double on = bench::Median(results[1].gateway);
    std::printf("%s\n", kind.name);
    std::printf("  gateway, median: %s %.1f us, %s %.1f us: %.2f times as fast (aim: 2)\n",
                kModes[0], off, kModes[1], on, off / on);
    const double seen_off = bench::Median(results[0].program);
    const double seen_on = bench::Median(results[1].program);
    std::printf("  program, median: %s %.1f us, %s %.1f us: %.2f times\n", kModes[0], seen_off,
                kModes[1], seen_on, seen_off / seen_on);
    PrintHistograms(results);
    char row[256];
    std::snprintf(row, sizeof row,
                  "%s{\"name\":\"%s\",\"unit\":\"us\",\"off\":%.2f,\"on\":%.2f,\"seen_off\":%.2f,"
                  "\"seen_on\":%.2f}",
                  json.size() == 1 ? "" : ",", kind.name, off, on, seen_off, seen_on);
    json += row;
  }
  std::printf("not out of the reserve: %llu\n", static_cast<unsigned long long>(bench.Misses()));
  bench::WriteJson(arguments, json + "]");
  return 0;
}

}  // namespace
}  // namespace rocegw::testing

int main(int argc, char** argv) { return rocegw::testing::Main(argc, argv); }
