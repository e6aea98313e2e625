// SPDX-License-Identifier: Apache-2.0
// The whole path in one process without a network: a program's post and poll (the library's own
// code), two workers, the in-memory port, ICRC, keys, placement, acknowledgements, completions. One
// thread runs program, sender and receiver in turn and the time of each is taken apart, so that the
// figures are per core and do not depend on how many cores are free.
//
// Floors are measured in the same run, in turn with the measurement: CRC-32 plus copy of 4096-byte
// pieces, over memory of the same size as the messages use.
#include <infiniband/verbs.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "gateway/wire/crc/icrc.h"
#include "tests/bench/library_program.h"
#include "tests/bench/measurement.h"
#include "tests/support/network/gateway_pair.h"

namespace rocegw::testing {
namespace {

struct Result {
  double seconds[3] = {};  // program, sender, receiver
  uint64_t operations = 0;
};

// Adds the CPU time between its two ends to a sum, less what the clock itself costs.
class Stopwatch {
 public:
  explicit Stopwatch(double& sum) : sum_(sum), begin_(bench::ThreadCpuSeconds()) {}
  ~Stopwatch() { sum_ += bench::ThreadCpuSeconds() - begin_ - bench::ThreadCpuClockCost(); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& sum_;
  double begin_;
};

// Copy engine that is infinitely fast and copies nothing: what a worker saves by an engine at most,
// with the worker's own bookkeeping and without the cost of a device's descriptors. Nothing in this
// benchmark looks at the bytes.
class NoCopies final : public memory::CopyQueue {
 public:
  uint32_t depth() const override { return kDepth; }
  bool Add(uint8_t*, const uint8_t*, uint32_t, uint32_t cookie) override {
    done_[count_++] = {cookie, true};
    return true;
  }
  void Start() override {}
  size_t Poll(std::span<Completion> into) override {
    const size_t count = std::min(into.size(), count_);
    count_ -= count;
    std::copy_n(done_.begin() + static_cast<ptrdiff_t>(count_), count, into.begin());
    return count;
  }
  bool Abandon() override { return true; }

 private:
  static constexpr uint32_t kDepth = 256;
  std::array<Completion, kDepth> done_;
  size_t count_ = 0;
};

struct Setting {
  const char* name;
  uint64_t operations;
  uint32_t size;
  uint32_t depth;
  Reach reach;
  bool read;
  bool channel = false;
  bool engine = false;  // the receiver has a copy engine
};
constexpr Setting kSettings[] = {
    {"write 8 B, remapped", 400000, 8, 128, Reach::kDirect, false},
    {"write 8 B, cross-process", 200000, 8, 128, Reach::kCrossProcess, false},
    {"write 64 B, remapped, channel", 400000, 64, 128, Reach::kDirect, false, true},
    {"write 1 MiB, remapped", 400, 1 << 20, 8, Reach::kDirect, false},
    {"write 1 MiB, cross-process", 200, 1 << 20, 8, Reach::kCrossProcess, false},
    {"read 1 MiB, remapped", 200, 1 << 20, 8, Reach::kDirect, true},
    {"write 1 MiB, engine", 400, 1 << 20, 8, Reach::kDirect, false, false, true},
};
constexpr size_t kSettingCount = std::size(kSettings);

Result Run(const Setting& setting) {
  GatewayPairOptions options;
  options.reach = setting.reach;
  options.memory_bytes = 32 << 20;
  options.congestion.window_bytes = 512 << 10;
  options.channels = setting.channel;
  NoCopies engine;
  if (setting.engine) options.engines[1].queue = &engine;
  options.engines[1].minimum_bytes = 1024;
  GatewayPair gateways(options);
  RingOptions ring;
  ring.sq_entries = 256;
  ring.max_sge = 1;
  ring.payload_stride = 64;
  ring.qpn = 77;
  RingEnd& a = gateways.AddQp(0, ring);
  ring.qpn = 78;
  RingEnd& b = gateways.AddQp(1, ring);
  gateways.Connect(a, b);
  LibraryProgram program(gateways, a);

  std::vector<ibv_sge> sges(setting.depth);
  std::vector<ibv_send_wr> wrs(setting.depth);
  std::vector<ibv_wc> wcs(64);
  const uint64_t slots = std::max<uint64_t>(1, (16 << 20) / std::max<uint32_t>(setting.size, 64));
  // What is touched for the first time (buffers of the port, the program's memory) is not what the
  // figures are about: an eighth of the operations goes ahead and is not counted.
  const uint64_t ahead = setting.operations / 8;
  Result result;
  uint64_t posted = 0;
  uint64_t done = 0;
  TimePoint now = gateways.now();
  while (done < ahead + setting.operations) {
    if (done < ahead) result = {};
    result.operations -= done;
    {
      const Stopwatch watch(result.seconds[0]);
      uint32_t count = 0;
      while (posted - done < setting.depth && posted < ahead + setting.operations) {
        const uint64_t slot = posted % slots;
        sges[count] = {gateways.Base(0) + slot * setting.size, setting.size, GatewayPair::kKey[0]};
        ibv_send_wr& wr = wrs[count];
        wr = {};
        wr.sg_list = &sges[count];
        wr.num_sge = 1;
        wr.opcode = setting.read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
        wr.send_flags = IBV_SEND_SIGNALED;
        wr.wr.rdma.remote_addr = gateways.Base(1) + slot * setting.size;
        wr.wr.rdma.rkey = GatewayPair::kKey[1];
        if (count != 0) wrs[count - 1].next = &wr;
        ++count;
        ++posted;
      }
      if (count != 0 && program.Post(wrs.data()) != 0) std::abort();
    }
    // A turn moves up to a window, which takes about this long; faster, and the gate of answers is
    // what is measured.
    now = now + Microseconds(50);
    for (const int side : {0, 1, 0}) {
      const Stopwatch watch(result.seconds[side == 0 ? 1 : 2]);
      gateways.RunWorker(side, 0, now);
    }
    const Stopwatch watch(result.seconds[0]);
    int n;
    while ((n = program.Poll(64, wcs.data())) > 0) {
      for (int i = 0; i < n; ++i) {
        if (wcs[static_cast<size_t>(i)].status != IBV_WC_SUCCESS) std::abort();
      }
      done += static_cast<uint64_t>(n);
    }
    result.operations += done;
  }
  if (gateways.Count(0, &metrics::WorkerCounters::retransmit_packets) != 0) {
    std::printf("note: %s had retransmissions\n", setting.name);
  }
  return result;
}

// Gbit/s of copying and of CRC over 4096-byte pieces: what a sender (one fused pass) and a receiver
// (CRC, then copy) cannot do without.
struct Floor {
  double fused;
  double crc_then_copy;
};
Floor MeasureFloor() {
  std::vector<uint8_t> from(16 << 20), to(16 << 20);
  std::memset(from.data(), 7, from.size());
  std::memset(to.data(), 1, to.size());
  volatile uint32_t sink = 0;
  Floor floor{};
  double begin = bench::ThreadCpuSeconds();
  for (int round = 0; round < 8; ++round) {
    for (size_t at = 0; at < from.size(); at += 4096) {
      sink = wire::CrcCopy(0, to.data() + at, from.data() + at, 4096);
    }
  }
  floor.fused =
      8.0 * 8 * static_cast<double>(from.size()) / (bench::ThreadCpuSeconds() - begin) / 1e9;
  begin = bench::ThreadCpuSeconds();
  for (int round = 0; round < 8; ++round) {
    for (size_t at = 0; at < from.size(); at += 4096) {
      sink = wire::CrcUpdate(0, {from.data() + at, 4096});
      std::memcpy(to.data() + at, from.data() + at, 4096);
    }
  }
  floor.crc_then_copy =
      8.0 * 8 * static_cast<double>(from.size()) / (bench::ThreadCpuSeconds() - begin) / 1e9;
  (void)sink;
  return floor;
}

using bench::Median;

int Main(int argc, char** argv) {
  const bench::Arguments arguments = bench::ParseArguments(argc, argv, 9);
  const int rounds = arguments.rounds;
  std::printf("%s\none thread, path MTU 4096, window 512 KiB, CRC %s, median of %d rounds\n",
              bench::Machine().c_str(), wire::CrcImplementation(), rounds);
  std::printf("%-28s %10s %10s %10s %12s\n", "", "sender+app", "receiver", "both", "of its floor");
  std::vector<std::vector<double>> sender(kSettingCount), receiver(kSettingCount),
      both(kSettingCount), share_s(kSettingCount), share_r(kSettingCount);
  std::vector<double> fused, separate;
  for (int round = 0; round < rounds; ++round) {
    for (size_t s = 0; s < kSettingCount; ++s) {
      const Floor floor = MeasureFloor();
      const Result r = Run(kSettings[s]);
      const double n = static_cast<double>(r.operations);
      const bool bulk = kSettings[s].size > 4096;
      const double unit = bulk ? 8.0 * kSettings[s].size / 1e9 : 1e-6;
      sender[s].push_back(n * unit / (r.seconds[0] + r.seconds[1]));
      receiver[s].push_back(n * unit / r.seconds[2]);
      both[s].push_back(n * unit / (r.seconds[0] + r.seconds[1] + r.seconds[2]));
      share_s[s].push_back(sender[s].back() /
                           (kSettings[s].read ? floor.crc_then_copy : floor.fused));
      share_r[s].push_back(receiver[s].back() /
                           (kSettings[s].read ? floor.fused : floor.crc_then_copy));
      fused.push_back(floor.fused);
      separate.push_back(floor.crc_then_copy);
    }
  }
  std::string json = "[";
  for (size_t s = 0; s < kSettingCount; ++s) {
    const bool bulk = kSettings[s].size > 4096;
    std::printf("%-28s %8.2f %s %8.2f %s %8.2f %s", kSettings[s].name, Median(sender[s]),
                bulk ? "G" : "M", Median(receiver[s]), bulk ? "G" : "M", Median(both[s]),
                bulk ? "G" : "M");
    if (bulk) std::printf("  %4.2f / %4.2f", Median(share_s[s]), Median(share_r[s]));
    std::printf("\n");
    char row[256];
    std::snprintf(
        row, sizeof row,
        "%s{\"name\":\"%s\",\"unit\":\"%s\",\"sender\":%.3f,\"receiver\":%.3f,\"both\":%.3f}",
        s == 0 ? "" : ",", kSettings[s].name, bulk ? "Gbit/s" : "M/s", Median(sender[s]),
        Median(receiver[s]), Median(both[s]));
    json += row;
  }
  std::printf(
      "floors, Gbit/s: copy with CRC in one pass %.0f (sender), CRC then copy %.0f (receiver)\n",
      Median(fused), Median(separate));
  bench::WriteJson(arguments, json + "]");
  return 0;
}

}  // namespace
}  // namespace rocegw::testing

int main(int argc, char** argv) { return rocegw::testing::Main(argc, argv); }
