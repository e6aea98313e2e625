// SPDX-License-Identifier: Apache-2.0
#include "controlplane/server/connection_front.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <malloc.h>
#include <netinet/in.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace rocegw::server {
namespace {

constexpr uint64_t kListenerId = 0;
constexpr uint64_t kWakeId = 1;
constexpr int kAcceptsAtOnce = 64;
constexpr int kEventsAtOnce = 64;
// Interval of the checks of strangers' time and bytes, and of retries after a failed accept.
constexpr std::chrono::milliseconds kTick(100);
// Receive buffer in bytes; the kernel doubles it.
constexpr int kStrangerBuffer = 1 << 15;
constexpr int kMemberBuffer = 1 << 20;
// Number of ended strangers after which unused heap is returned. The C library keeps the memory
// that gRPC took for their streams; returning it locks the heap for about 60 ms per GiB.
constexpr uint64_t kManyEnded = 32;
constexpr size_t kKeptBytes = size_t{16} << 20;
constexpr std::chrono::seconds kHeapSettles(1);
constexpr std::chrono::seconds kHeapEvery(3);
// gRPC ends streams late, so one check is not enough.
constexpr int kHeapLooks = 3;
constexpr std::chrono::seconds kReportEvery(10);
constexpr unsigned kUserTimeoutMs = 20000;

struct Place {
  std::string peer;    // with the port
  std::string source;  // an IPv4 address, or the /64 network of an IPv6 address
};

Place PlaceOf(const sockaddr_storage& from) {
  char text[INET6_ADDRSTRLEN] = "";
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(from);
  if (from.ss_family == AF_INET6 && !IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
    return {"[" + std::string(text) + "]:" + std::to_string(ntohs(v6.sin6_port)), [&] {
              in6_addr network = v6.sin6_addr;
              std::memset(&network.s6_addr[8], 0, 8);
              inet_ntop(AF_INET6, &network, text, sizeof text);
              return std::string(text) + "/64";
            }()};
  }
  const auto& v4 = reinterpret_cast<const sockaddr_in&>(from);
  const void* const address = from.ss_family == AF_INET6
                                  ? static_cast<const void*>(&v6.sin6_addr.s6_addr[12])
                                  : &v4.sin_addr;
  const in_port_t port = from.ss_family == AF_INET6 ? v6.sin6_port : v4.sin_port;
  inet_ntop(AF_INET, address, text, sizeof text);
  return {std::string(text) + ":" + std::to_string(ntohs(port)), text};
}

uint64_t CookieOf(int fd) {
  uint64_t cookie = 0;
  socklen_t size = sizeof cookie;
  return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size) == 0 ? cookie : 0;
}

uint64_t ReceivedBytes(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 ? info.tcpi_bytes_received : 0;
}

Status CannotListen(const std::string& address, int error) {
  return {error,
          "address " + address + ": cannot listen there: " + std::strerror(error) +
              (error == EADDRINUSE ? "; another process has the port: stop it, or set address"
                                   : "; set address to one of this host")};
}

}  // namespace

FrontLimits LimitsFor(uint64_t descriptor_limit) {
  FrontLimits limits;
  const size_t eighth = std::max<size_t>(descriptor_limit / 8, 4);
  // A stranger uses two descriptors.
  limits.strangers = std::min(limits.strangers, eighth);
  limits.strangers_per_source = std::min(limits.strangers_per_source, limits.strangers / 2);
  limits.per_member = std::min(limits.per_member, 2 * eighth);
  limits.descriptors = static_cast<int>(
      std::min<uint64_t>(descriptor_limit - std::min<uint64_t>(eighth, 256), 1U << 30));
  return limits;
}

std::string PeerKey(std::string_view grpc_peer) {
  const bool v6 = grpc_peer.starts_with("ipv6:");
  if (!v6 && !grpc_peer.starts_with("ipv4:")) return {};
  std::string key;
  bool in_zone = false;
  for (size_t i = 5; i < grpc_peer.size(); ++i) {
    char c = grpc_peer[i];
    if (c == '%') {  // gRPC writes brackets and the zone's sign as %5B, %5D and %25
      const std::string_view code = grpc_peer.substr(i + 1, 2);
      i += 2;
      if (code == "25") in_zone = true;
      if (code != "5B" && code != "5D") continue;
      c = code == "5B" ? '[' : ']';
    }
    if (c == ']') in_zone = false;
    if (!in_zone) key += c;
  }
  return key;
}

Status ConnectionFront::Listen(const std::string& address) {
  const size_t colon = address.rfind(':');
  std::string host = address.substr(0, colon);
  const auto port = htons(static_cast<uint16_t>(std::stoul(address.substr(colon + 1))));
  sockaddr_storage storage{};
  socklen_t length = sizeof(sockaddr_in);
  auto* const v4 = reinterpret_cast<sockaddr_in*>(&storage);
  auto* const v6 = reinterpret_cast<sockaddr_in6*>(&storage);
  if (host.starts_with('[')) {
    host = host.substr(1, host.size() - 2);
    v6->sin6_family = AF_INET6;
    v6->sin6_port = port;
    length = sizeof *v6;
    inet_pton(AF_INET6, host.c_str(), &v6->sin6_addr);
  } else {
    v4->sin_family = AF_INET;
    v4->sin_port = port;
    inet_pton(AF_INET, host.c_str(), &v4->sin_addr);
  }
  constexpr int kKind = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
  listener_.Reset(socket(storage.ss_family, kKind, 0));
  // Without IPv6 the any-address means that of IPv4.
  if (!listener_.valid() && errno == EAFNOSUPPORT && host == "::") {
    storage = {};
    v4->sin_family = AF_INET;
    v4->sin_port = port;
    length = sizeof *v4;
    listener_.Reset(socket(AF_INET, kKind, 0));
  }
  const int on = 1;
  const int off = 0;
  setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (storage.ss_family == AF_INET6 && host == "::") {
    setsockopt(listener_.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  auto* const generic = reinterpret_cast<sockaddr*>(&storage);
  if (bind(listener_.get(), generic, length) != 0 || listen(listener_.get(), SOMAXCONN) != 0 ||
      getsockname(listener_.get(), generic, &length) != 0) {
    const int error = errno;
    listener_.Reset();
    return CannotListen(address, error);
  }
  port_ = ntohs(storage.ss_family == AF_INET6 ? v6->sin6_port : v4->sin_port);
  return OkStatus();
}

Status ConnectionFront::Start(HandOff hand_off) {
  hand_off_ = std::move(hand_off);
  epoll_.Reset(epoll_create1(EPOLL_CLOEXEC));
  wake_.Reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kListenerId;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listener_.get(), &event) != 0) {
    return {errno, "address: its connections cannot be waited for"};
  }
  event.data.u64 = kWakeId;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event) != 0) {
    return {errno, "address: its connections cannot be waited for"};
  }
  thread_ = std::thread([this] { Run(); });
  return OkStatus();
}

void ConnectionFront::Stop() {
  stopping_.store(true);
  if (thread_.joinable()) {
    eventfd_write(wake_.get(), 1);
    thread_.join();
  }
  listener_.Reset();
}

void ConnectionFront::Run() {
  Clock::time_point look = Clock::now();
  while (!stopping_.load()) {
    std::array<epoll_event, kEventsAtOnce> events;
    const bool any = strangers() != 0 || HeapIsDue();
    const int count = epoll_wait(epoll_.get(), events.data(), kEventsAtOnce,
                                 any ? static_cast<int>(kTick.count()) : -1);
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<size_t>(i)];
      const uint64_t id = event.data.u64;
      if (id == kListenerId) {
        AcceptAll();
      } else if (id != kWakeId) {
        if ((event.events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) {
          EndedByPeer(id);
        } else {
          Received(id);
        }
      }
    }
    if (Clock::now() < look) continue;
    ReturnHeap();
    CloseOverdue();
    look = Clock::now() + kTick;
  }
}

void ConnectionFront::AcceptAll() {
  for (int i = 0; i < kAcceptsAtOnce; ++i) {
    sockaddr_storage from{};
    socklen_t length = sizeof from;
    UniqueFd connection(accept4(listener_.get(), reinterpret_cast<sockaddr*>(&from), &length,
                                SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (connection.valid()) {
      Accept(std::move(connection), from);
      continue;
    }
    if (errno == ECONNABORTED || errno == EINTR) continue;
    if (errno != EAGAIN) {
      // No descriptor or memory left: closes strangers, and retries a moment later.
      {
        const std::lock_guard lock(mutex_);
        if (!strangers_.empty()) CloseOldestOf(BusiestSource(), FrontClose::kDescriptors);
      }
      std::this_thread::sleep_for(kTick);
    }
    return;
  }
}

void ConnectionFront::Accept(UniqueFd connection, const sockaddr_storage& from) {
  Place place = PlaceOf(from);
  const int on = 1;
  setsockopt(connection.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(connection.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &kUserTimeoutMs,
             sizeof kUserTimeoutMs);
  // After a shutdown, received data can still be read.
  setsockopt(connection.get(), SOL_SOCKET, SO_RCVBUF, &kStrangerBuffer, sizeof kStrangerBuffer);
  UniqueFd watch(fcntl(connection.get(), F_DUPFD_CLOEXEC, 0));
  {
    const std::lock_guard lock(mutex_);
    // The kernel assigns the lowest free number: all numbers below it are in use.
    if (!watch.valid() || watch.get() >= limits_.descriptors) {
      if (strangers_.empty()) return CountClosed(FrontClose::kDescriptors, place.source);
      CloseOldestOf(BusiestSource(), FrontClose::kDescriptors);
      if (!watch.valid()) return CountClosed(FrontClose::kDescriptors, place.source);
    }
    if (const auto old = by_peer_.find(place.peer); old != by_peer_.end()) Forget(old->second);
    const auto of_source = per_source_.find(place.source);
    if (of_source != per_source_.end() && of_source->second >= limits_.strangers_per_source) {
      CloseOldestOf(place.source, FrontClose::kSource);
    }
    if (strangers_.size() >= limits_.strangers) {
      CloseOldestOf(BusiestSource(), FrontClose::kStrangers);
    }
    const uint64_t id = next_id_++;
    epoll_event event{};
    // Edge-triggered, so each arrival is an event: within a tick a stranger could send so much that
    // gRPC takes hundreds of MiB for its streams.
    event.events = EPOLLRDHUP | EPOLLIN | EPOLLET;
    event.data.u64 = id;
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, watch.get(), &event) != 0) {
      return CountClosed(FrontClose::kDescriptors, place.source);
    }
    ++per_source_[place.source];
    by_peer_[place.peer] = id;
    strangers_.emplace(id, Stranger{.watch = std::move(watch),
                                    .handed = connection.get(),
                                    .cookie = CookieOf(connection.get()),
                                    .peer = std::move(place.peer),
                                    .source = std::move(place.source),
                                    .deadline = Clock::now() + limits_.stranger_time});
  }
  hand_off_(listener_.get(), connection.Release());
}

void ConnectionFront::CloseOverdue() {
  const std::lock_guard lock(mutex_);
  const Clock::time_point now = Clock::now();
  for (auto one = strangers_.begin(); one != strangers_.end();) {
    const auto& [id, stranger] = *one++;
    if (stranger.deadline <= now) Close(id, FrontClose::kTime);
  }
}

void ConnectionFront::Received(uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = strangers_.find(id);
  if (found != strangers_.end() &&
      ReceivedBytes(found->second.watch.get()) > limits_.stranger_bytes) {
    Close(id, FrontClose::kBytes);
  }
}

void ConnectionFront::EndedByPeer(uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = strangers_.find(id);
  if (found == strangers_.end()) return;
  // A peer that closes only one direction would keep a connection that is not counted.
  shutdown(found->second.watch.get(), SHUT_RDWR);
  Forget(id);
}

void ConnectionFront::CloseOldestOf(const std::string& source, FrontClose reason) {
  const auto oldest = std::ranges::find_if(
      strangers_, [&](const auto& one) { return one.second.source == source; });
  if (oldest != strangers_.end()) Close(oldest->first, reason);
}

std::string ConnectionFront::BusiestSource() const {
  size_t most = 0;
  std::string busiest;
  for (const auto& [id, stranger] : strangers_) {
    const size_t count = per_source_.at(stranger.source);
    if (count <= most) continue;
    most = count;
    busiest = stranger.source;
  }
  return busiest;
}

void ConnectionFront::Close(uint64_t id, FrontClose reason) {
  const Stranger& stranger = strangers_.at(id);
  CountClosed(reason, stranger.source);
  shutdown(stranger.watch.get(), SHUT_RDWR);
  Forget(id);
}

void ConnectionFront::Forget(uint64_t id) {
  const auto found = strangers_.find(id);
  if (found == strangers_.end()) return;
  const Stranger& stranger = found->second;
  // The registration would outlive the descriptor, since gRPC's refers to the same socket.
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, stranger.watch.get(), nullptr);
  by_peer_.erase(stranger.peer);
  const auto source = per_source_.find(stranger.source);
  if (--source->second == 0) per_source_.erase(source);
  strangers_.erase(found);
  if (++ended_ < kManyEnded) return;
  ended_ = 0;
  if (heap_looks_ == 0) heap_due_ = std::max(heap_due_, Clock::now() + kHeapSettles);
  heap_looks_ = kHeapLooks;
}

bool ConnectionFront::HeapIsDue() const {
  const std::lock_guard lock(mutex_);
  return heap_looks_ > 0;
}

void ConnectionFront::ReturnHeap() {
  const Clock::time_point now = Clock::now();
  {
    const std::lock_guard lock(mutex_);
    if (heap_looks_ == 0 || now < heap_due_) return;
    --heap_looks_;
    heap_due_ = now + kHeapEvery;
  }
  if (mallinfo2().fordblks < kKeptBytes) return;
  (void)malloc_trim(kKeptBytes);
  heap_returns_.fetch_add(1);
}

void ConnectionFront::Admit(const std::string& peer, const std::string& principal) {
  const std::lock_guard lock(mutex_);
  const auto found = by_peer_.find(peer);
  if (found == by_peer_.end()) return;
  const uint64_t id = found->second;
  const Stranger& stranger = strangers_.at(id);
  std::vector<Member>& of_principal = members_[principal];
  if (of_principal.size() >= limits_.per_member) {
    std::erase_if(of_principal,
                  [](const Member& one) { return CookieOf(one.handed) != one.cookie; });
  }
  if (of_principal.size() >= limits_.per_member) return Close(id, FrontClose::kMember);
  of_principal.push_back({.handed = stranger.handed, .cookie = stranger.cookie});
  setsockopt(stranger.watch.get(), SOL_SOCKET, SO_RCVBUF, &kMemberBuffer, sizeof kMemberBuffer);
  Forget(id);
}

size_t ConnectionFront::strangers() const {
  const std::lock_guard lock(mutex_);
  return strangers_.size();
}

void ConnectionFront::CountClosed(FrontClose reason, const std::string& source) {
  closed_[static_cast<size_t>(reason)].fetch_add(1);
  ++unreported_;
  const Clock::time_point now = Clock::now();
  if (now < next_report_) return;
  spdlog::warn(
      "closed {} connections at the limits for callers without a certificate; the latest came from "
      "{} "
      "(limit: {})",
      unreported_, source, kFrontCloseNames[static_cast<size_t>(reason)]);
  unreported_ = 0;
  next_report_ = now + kReportEvery;
}

}  // namespace rocegw::server
