// SPDX-License-Identifier: Apache-2.0
// The floor beside which the udp port mode is measured: what kernel UDP sockets, the ICRC and one
// copy per side cost without any RDMA in between. 4 KiB payloads with 20 bytes of headers and ICRC,
// 15 to a send with segmentation offload, receive offload at the other end; the payload comes from
// another process's memory (cross-process copy, as the gateway's default) or from the own one
// (--remapped). With --in-place the sender copies nothing: the kernel takes the payload from the
// own memory. A window of bytes in flight, opened by acknowledgements, keeps the receiver from
// drowning. What is lost is counted and made up for, not sent again.
//   udp_floor receive ADDRESS [--remapped]
//   udp_floor send ADDRESS OWN_ADDRESS SECONDS [--remapped | --in-place]
// Both print one line `KEY=VALUE ...` at the end: bytes, seconds, cpu seconds of the process.
//   udp_floor pong ADDRESS
//   udp_floor ping ADDRESS OWN_ADDRESS COUNT
// One small packet there and back at a time, both ends asking their socket again and again as
// perftest does its completions; prints half a round trip, in microseconds.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "gateway/wire/crc/icrc.h"

namespace rocegw::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint16_t kPort = 18791;
constexpr size_t kHeader = 16;  // BTH and a part of what else a request carries
constexpr size_t kPayload = 4096;
constexpr size_t kIcrc = 4;
constexpr size_t kDatagram = kHeader + kPayload + kIcrc;
constexpr size_t kSegments = 15;
constexpr size_t kWindow = size_t{1} << 20;
constexpr size_t kClientMemory = size_t{64}
                                 << 20;  // beyond the caches, as a message of a real program
constexpr int kSocketBuffer = 16 << 20;

[[noreturn]] void Die(const char* what) {
  std::perror(what);
  std::exit(1);
}

// The memory of the application: of a process of its own, or ours when it counts as remapped.
class ClientMemory {
 public:
  explicit ClientMemory(bool remapped) : remapped_(remapped) {
    void* memory =
        mmap(nullptr, kClientMemory, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) Die("mmap");
    base_ = static_cast<uint8_t*>(memory);
    if (!remapped_) {
      child_ = fork();
      if (child_ < 0) Die("fork");
      if (child_ == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        std::memset(base_, 0x5A, kClientMemory);
        while (true) pause();
      }
    }
    std::memset(base_, 0x5A, kClientMemory);
  }
  ~ClientMemory() {
    if (child_ > 0) {
      kill(child_, SIGKILL);
      waitpid(child_, nullptr, 0);
    }
  }
  ClientMemory(const ClientMemory&) = delete;
  ClientMemory& operator=(const ClientMemory&) = delete;

  // Returns the next `length` bytes of the memory.
  uint8_t* Next(size_t length) {
    if (position_ + length > kClientMemory) position_ = 0;
    uint8_t* const at = base_ + position_;
    position_ += length;
    return at;
  }
  // Moves `count` payloads between local places and the next place of the client's memory.
  void Read(const iovec* local, size_t count) { Move(local, count, false); }
  void Write(const iovec* local, size_t count) { Move(local, count, true); }

 private:
  void Move(const iovec* local, size_t count, bool write) {
    const size_t length = count * kPayload;
    uint8_t* const remote = Next(length);
    if (remapped_) {
      for (size_t i = 0; i < count; ++i) {
        uint8_t* there = remote + i * kPayload;
        if (write) {
          std::memcpy(there, local[i].iov_base, kPayload);
        } else {
          std::memcpy(local[i].iov_base, there, kPayload);
        }
      }
      return;
    }
    const iovec there{.iov_base = remote, .iov_len = length};
    const ssize_t moved = write ? process_vm_writev(child_, local, count, &there, 1, 0)
                                : process_vm_readv(child_, local, count, &there, 1, 0);
    if (moved != static_cast<ssize_t>(length)) Die("cross-process copy");
  }

  bool remapped_;
  pid_t child_ = -1;
  uint8_t* base_ = nullptr;
  size_t position_ = 0;
};

sockaddr_in Address(const char* text, uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  if (inet_pton(AF_INET, text, &address.sin_addr) != 1) {
    std::fprintf(stderr, "udp_floor: '%s' is not an IPv4 address\n", text);
    std::exit(2);
  }
  return address;
}

int OpenSocket(const sockaddr_in& own) {
  const int fd = socket(AF_INET, SOCK_DGRAM, 0);
  if (fd < 0) Die("socket");
  const int discover = IP_PMTUDISC_DO;
  setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &discover, sizeof discover);
  setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &kSocketBuffer, sizeof kSocketBuffer);
  setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &kSocketBuffer, sizeof kSocketBuffer);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0) Die("bind");
  return fd;
}

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void Report(const char* role, uint64_t bytes, Clock::duration time, double cpu, uint64_t lost) {
  const double seconds = std::chrono::duration<double>(time).count();
  std::printf("role=%s bytes=%llu seconds=%.3f gbit_s=%.2f cpu_s=%.3f lost=%llu crc=%s\n", role,
              static_cast<unsigned long long>(bytes), seconds,
              static_cast<double>(bytes) * 8e-9 / seconds, cpu,
              static_cast<unsigned long long>(lost), wire::CrcImplementation());
}

// An empty datagram ends a run; every other is answered with the payload bytes received so far.
int Receive(const char* own_text, bool remapped) {
  const sockaddr_in own = Address(own_text, kPort);
  const int fd = OpenSocket(own);
  const int on = 1;
  if (setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof on) != 0) Die("UDP_GRO");
  std::printf("udp_floor: receiving\n");
  std::fflush(stdout);
  ClientMemory memory(remapped);
  std::vector<uint8_t> buffer(65536);
  uint64_t received = 0;
  uint64_t bad = 0;
  Clock::time_point start{};
  double cpu = 0;
  while (true) {
    sockaddr_in from{};
    socklen_t length = sizeof from;
    const ssize_t n =
        recvfrom(fd, buffer.data(), buffer.size(), 0, reinterpret_cast<sockaddr*>(&from), &length);
    if (n < 0) Die("recvfrom");
    if (n == 0) break;
    if (received == 0) {
      start = Clock::now();
      cpu = CpuSeconds();
    }
    wire::RxMeta meta;
    meta.source = wire::Gid::FromV4(ntohl(from.sin_addr.s_addr));
    meta.destination = wire::Gid::FromV4(ntohl(own.sin_addr.s_addr));
    meta.source_port = ntohs(from.sin_port);
    std::array<iovec, 64> pieces;
    size_t count = 0;
    for (size_t at = 0; at + kDatagram <= static_cast<size_t>(n); at += kDatagram) {
      uint16_t ip_id = 0;
      if (!wire::VerifyIcrc(meta, {buffer.data() + at, kDatagram}, &ip_id)) ++bad;
      pieces[count++] = {.iov_base = buffer.data() + at + kHeader, .iov_len = kPayload};
    }
    memory.Write(pieces.data(), count);
    received += count * kPayload;
    sendto(fd, &received, sizeof received, 0, reinterpret_cast<const sockaddr*>(&from), length);
  }
  Report("receive", received, Clock::now() - start, CpuSeconds() - cpu, bad);
  return bad == 0 ? 0 : 1;
}

// One segmented send: headers and ICRCs here, payloads here or in the client's memory.
class Burst {
 public:
  explicit Burst(bool in_place) : in_place_(in_place), buffer_(kSegments * kDatagram) {
    for (size_t i = 0; i < kSegments; ++i)
      copies_[i] = {.iov_base = At(i) + kHeader, .iov_len = kPayload};
  }
  // Returns the pieces of memory to send, with the next payloads of the client.
  std::span<iovec> Fill(ClientMemory& memory, const wire::Path& path) {
    if (in_place_) return Gather(memory.Next(kSegments * kPayload), path);
    memory.Read(copies_.data(), kSegments);
    for (size_t i = 0; i < kSegments; ++i)
      wire::SealIcrc(path, static_cast<uint16_t>(i), At(i), kHeader + kPayload);
    pieces_[0] = {.iov_base = buffer_.data(), .iov_len = buffer_.size()};
    return std::span(pieces_).first(1);
  }

 private:
  uint8_t* At(size_t segment) { return buffer_.data() + segment * kDatagram; }
  // The ICRC of one segment and the headers of the next one are one piece.
  std::span<iovec> Gather(uint8_t* payloads, const wire::Path& path) {
    for (size_t i = 0; i < kSegments; ++i) {
      uint8_t* const payload = payloads + i * kPayload;
      wire::SealIcrcAround(path, static_cast<uint16_t>(i), At(i), kHeader + kPayload,
                           {payload, kHeader, kPayload});
      const size_t before = i == 0 ? 0 : kIcrc;
      pieces_[2 * i] = {.iov_base = At(i) - before, .iov_len = before + kHeader};
      pieces_[2 * i + 1] = {.iov_base = payload, .iov_len = kPayload};
    }
    pieces_[2 * kSegments] = {.iov_base = At(kSegments) - kIcrc, .iov_len = kIcrc};
    return pieces_;
  }

  const bool in_place_;
  std::vector<uint8_t> buffer_;
  std::array<iovec, kSegments> copies_;
  std::array<iovec, 2 * kSegments + 1> pieces_;
};

int Send(const char* to_text, const char* own_text, double seconds, bool remapped, bool in_place) {
  const sockaddr_in to = Address(to_text, kPort);
  const sockaddr_in own = Address(own_text, kPort);
  const int fd = OpenSocket(own);
  const int segment = kDatagram;
  if (setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof segment) != 0) Die("UDP_SEGMENT");
  ClientMemory memory(remapped);
  wire::Path path;
  path.source = wire::Gid::FromV4(ntohl(own.sin_addr.s_addr));
  path.destination = wire::Gid::FromV4(ntohl(to.sin_addr.s_addr));
  path.source_port = kPort;
  Burst burst(in_place);
  sockaddr_in name = to;
  uint64_t sent = 0;
  uint64_t acknowledged = 0;
  uint64_t lost = 0;
  const auto start = Clock::now();
  const double cpu = CpuSeconds();
  while (std::chrono::duration<double>(Clock::now() - start).count() < seconds) {
    const bool open = sent - acknowledged - lost < kWindow;
    pollfd wait{.fd = fd, .events = POLLIN, .revents = 0};
    const int ready = poll(&wait, 1, open ? 0 : 100);
    if (ready > 0) {
      uint64_t total = 0;
      if (recv(fd, &total, sizeof total, 0) == sizeof total) acknowledged = total;
      continue;
    }
    if (!open) {  // nothing came for 100 ms: what is still in flight is gone
      lost = sent - acknowledged;
      continue;
    }
    const std::span<iovec> pieces = burst.Fill(memory, path);
    msghdr message{};
    message.msg_name = &name;
    message.msg_namelen = sizeof name;
    message.msg_iov = pieces.data();
    message.msg_iovlen = pieces.size();
    if (sendmsg(fd, &message, 0) < 0) Die("sendmsg");
    sent += kSegments * kPayload;
  }
  Report("send", acknowledged, Clock::now() - start, CpuSeconds() - cpu, lost);
  for (int i = 0; i < 3; ++i) {
    sendto(fd, nullptr, 0, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to);
  }
  return 0;
}

constexpr size_t kPing = kHeader + 8 + kIcrc;

// Asks until there is a datagram, and lets others have the processor as the gateway does.
ssize_t AwaitDatagram(int fd, uint8_t* into, size_t size, sockaddr_in* from) {
  for (uint32_t empty = 1;; ++empty) {
    socklen_t length = sizeof *from;
    const ssize_t n =
        recvfrom(fd, into, size, MSG_DONTWAIT, reinterpret_cast<sockaddr*>(from), &length);
    if (n >= 0) return n;
    if (empty % 64 == 0) sched_yield();
  }
}

int Pong(const char* own_text) {
  const sockaddr_in own = Address(own_text, kPort);
  const int fd = OpenSocket(own);
  std::printf("udp_floor: receiving\n");
  std::fflush(stdout);
  std::array<uint8_t, 256> buffer;
  sockaddr_in from{};
  while (AwaitDatagram(fd, buffer.data(), buffer.size(), &from) == kPing) {
    wire::RxMeta meta;
    meta.source = wire::Gid::FromV4(ntohl(from.sin_addr.s_addr));
    meta.destination = wire::Gid::FromV4(ntohl(own.sin_addr.s_addr));
    meta.source_port = ntohs(from.sin_port);
    uint16_t ip_id = 0;
    if (!wire::VerifyIcrc(meta, {buffer.data(), kPing}, &ip_id)) return 1;
    wire::Path path{.source = meta.destination, .destination = meta.source, .source_port = kPort};
    wire::SealIcrc(path, 0, buffer.data(), kPing - kIcrc);
    sendto(fd, buffer.data(), kPing, 0, reinterpret_cast<const sockaddr*>(&from), sizeof from);
  }
  return 0;
}

int Ping(const char* to_text, const char* own_text, size_t count) {
  const sockaddr_in to = Address(to_text, kPort);
  const sockaddr_in own = Address(own_text, kPort);
  const int fd = OpenSocket(own);
  const wire::Path path{.source = wire::Gid::FromV4(ntohl(own.sin_addr.s_addr)),
                        .destination = wire::Gid::FromV4(ntohl(to.sin_addr.s_addr)),
                        .source_port = kPort};
  std::array<uint8_t, 256> buffer{};
  std::vector<double> halves;
  for (size_t i = 0; i < count; ++i) {
    const auto start = Clock::now();
    wire::SealIcrc(path, 0, buffer.data(), kPing - kIcrc);
    sendto(fd, buffer.data(), kPing, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to);
    sockaddr_in from{};
    AwaitDatagram(fd, buffer.data(), buffer.size(), &from);
    halves.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count() / 2);
  }
  std::sort(halves.begin(), halves.end());
  std::printf("role=ping count=%zu p50_us=%.2f p99_us=%.2f crc=%s\n", count, halves[count / 2],
              halves[count * 99 / 100], wire::CrcImplementation());
  sendto(fd, nullptr, 0, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to);
  return 0;
}

}  // namespace
}  // namespace rocegw::bench

int main(int argc, char** argv) {
  const bool in_place = argc > 1 && std::strcmp(argv[argc - 1], "--in-place") == 0;
  const bool remapped = in_place || (argc > 1 && std::strcmp(argv[argc - 1], "--remapped") == 0);
  const int words = remapped ? argc - 1 : argc;
  const std::string role = words > 1 ? argv[1] : "";
  if (role == "receive" && words == 3) return rocegw::bench::Receive(argv[2], remapped);
  if (role == "send" && words == 5) {
    return rocegw::bench::Send(argv[2], argv[3], std::atof(argv[4]), remapped, in_place);
  }
  if (role == "pong" && words == 3) return rocegw::bench::Pong(argv[2]);
  if (role == "ping" && words == 5) {
    return rocegw::bench::Ping(argv[2], argv[3], std::max(std::atoi(argv[4]), 1));
  }
  std::fprintf(stderr,
               "usage: udp_floor receive ADDRESS [--remapped]\n"
               "       udp_floor send ADDRESS OWN_ADDRESS SECONDS [--remapped | --in-place]\n"
               "       udp_floor pong ADDRESS\n"
               "       udp_floor ping ADDRESS OWN_ADDRESS COUNT\n");
  return 2;
}
