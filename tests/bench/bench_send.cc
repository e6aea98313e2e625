// SPDX-License-Identifier: Apache-2.0
// Cost of sending from remapped memory by the udp port: the payload copied into the packet with its
// CRC, as the worker does, beside a payload by reference. Packets of one path leave in segmented
// sends to a socket of this host that nobody reads, so the kernel's copy is in both figures and a
// receiver in none. Both ways take turns. Prints nanoseconds of CPU per packet, medians of rounds.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "gateway/base/unique_fd.h"
#include "gateway/port/udp/udp_socket.h"
#include "gateway/port/udp/udp_transmitter.h"
#include "gateway/wire/headers.h"
#include "tests/bench/measurement.h"

namespace rocegw::bench {
namespace {

constexpr size_t kHeaders = wire::kBthLength + 16;
constexpr size_t kBurst = 60;  // as many packets as a worker sends of one queue pair in a round
constexpr size_t kPackets = 60 * kBurst;  // a measurement

class Sender {
 public:
  explicit Sender(size_t memory_bytes)
      : memory_bytes_(memory_bytes),
        memory_(static_cast<uint8_t*>(mmap(nullptr, memory_bytes, PROT_READ | PROT_WRITE,
                                           MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0))),
        sink_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof at;
    const int on = 1;     // the kernel does not segment for a socket that takes merged packets
    const int least = 1;  // the kernel raises it to its minimum, so nearly everything is dropped
    if (memory_ == MAP_FAILED || !sink_.valid() ||
        setsockopt(sink_.get(), IPPROTO_UDP, UDP_GRO, &on, sizeof on) != 0 ||
        setsockopt(sink_.get(), SOL_SOCKET, SO_RCVBUF, &least, sizeof least) != 0 ||
        bind(sink_.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0 ||
        getsockname(sink_.get(), reinterpret_cast<sockaddr*>(&at), &length) != 0) {
      std::perror("bench_send");
      std::exit(1);
    }
    transmitter_.emplace(port::UdpTransmitterConfig{.packets = 256,
                                                    .limits = {.max_datagram = 4200},
                                                    .segment_ipv4 = true,
                                                    .udp_port = ntohs(at.sin_port)},
                         counters_);
    path_.source = path_.destination = wire::Gid::FromV4(INADDR_LOOPBACK);
  }
  ~Sender() { munmap(memory_, memory_bytes_); }
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  // Returns nanoseconds of CPU per packet.
  double Run(uint32_t payload, bool outside) {
    const double before = ThreadCpuSeconds();
    for (size_t sent = 0; sent < kPackets; sent += kBurst) Burst(payload, outside);
    return (ThreadCpuSeconds() - before) * 1e9 / kPackets;
  }

 private:
  void Burst(uint32_t payload, bool outside) {
    port::TxPacket* packets[kBurst];
    for (port::TxPacket*& packet : packets) {
      packet = transmitter_->Acquire();
      packet->path = path_;
      packet->length = static_cast<uint32_t>(kHeaders) + payload;
      packet->outside = {Next(payload), kHeaders, payload};
      if (!outside) packet->Flatten();
    }
    if (transmitter_->Transmit(packets) != kBurst || !transmitter_->Flush()) {
      std::fprintf(stderr, "bench_send: the kernel does not take the packets\n");
      std::exit(1);
    }
  }
  const uint8_t* Next(size_t length) {
    if (position_ + length > memory_bytes_) position_ = 0;
    position_ += length;
    return memory_ + position_ - length;
  }

  const size_t memory_bytes_;
  uint8_t* const memory_;
  UniqueFd sink_;
  port::PortCounters counters_;
  std::optional<port::UdpTransmitter> transmitter_;
  wire::Path path_;
  size_t position_ = 0;
};

int Main(int argc, char** argv) {
  const Arguments arguments = ParseArguments(argc, argv, 15);
  std::printf("%s\n%10s%10s%12s%14s%8s\n", Machine().c_str(), "memory", "payload", "copied ns",
              "reference ns", "ratio");
  std::string json = "[";
  for (const size_t memory : {size_t{64} << 10, size_t{1} << 20, size_t{64} << 20}) {
    Sender sender(memory);
    for (const uint32_t payload : {512u, 1024u, 2048u, 4096u}) {
      std::vector<double> ns[2];
      for (int round = 0; round < 2 * arguments.rounds; ++round) {
        const bool outside = (round + round / 2) % 2 != 0;  // A B B A
        ns[outside ? 1 : 0].push_back(sender.Run(payload, outside));
      }
      const double copied = Median(ns[0]);
      const double reference = Median(ns[1]);
      std::printf("%8zu K%10u%12.0f%14.0f%8.2f\n", memory >> 10, payload, copied, reference,
                  reference / copied);
      json += (json.size() > 1 ? ",\n " : "") + std::string("{\"memory\": ") +
              std::to_string(memory) + ", \"payload\": " + std::to_string(payload) +
              ", \"copied_ns\": " + std::to_string(copied) +
              ", \"reference_ns\": " + std::to_string(reference) + "}";
    }
  }
  WriteJson(arguments, json + "]\n");
  return 0;
}

}  // namespace
}  // namespace rocegw::bench

int main(int argc, char** argv) { return rocegw::bench::Main(argc, argv); }
