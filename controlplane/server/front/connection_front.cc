// SPDX-License-Identifier: Apache-2.0
#include "controlplane/server/front/connection_front.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include "controlplane/server/front/client_hello.h"
#include "controlplane/server/front/listening_socket.h"
#include "controlplane/server/front/peer_address.h"
#include "controlplane/server/front/received_bytes.h"

namespace rocegw::server {
namespace {

constexpr uint64_t kListenerId = 0;
constexpr uint64_t kWakeId = 1;
constexpr int kAtOnce = 64;  // accepts, events
// Interval of the checks of strangers' time and bytes, and of retries after a failed accept.
constexpr std::chrono::milliseconds kTick(100);
constexpr int kMemberBuffer = 1 << 20;
constexpr std::chrono::seconds kReportEvery(10);
constexpr std::chrono::seconds kHeapTick(1);
constexpr unsigned kUserTimeoutMs = 20000;

}  // namespace

Status ConnectionFront::Listen(const std::string& address) {
  auto listening = ListenAt(address);
  if (!listening.ok()) return listening.status();
  listener_ = std::move(listening->fd);
  port_ = listening->port;
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
  // Edge-triggered: each write is an event, and the counter need not be read.
  event.events = EPOLLIN | EPOLLET;
  event.data.u64 = kWakeId;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event) != 0) {
    return {errno, "address: its connections cannot be waited for"};
  }
  hand_off_thread_ = std::thread([this] { HandOffAll(); });
  thread_ = std::thread([this] { Run(); });
  return OkStatus();
}

void ConnectionFront::Stop() {
  stopping_.store(true);
  if (thread_.joinable()) {
    eventfd_write(wake_.get(), 1);
    thread_.join();
    {
      const std::lock_guard lock(mutex_);
      taken_.notify_one();
    }
    hand_off_thread_.join();
  }
  listener_.Reset();
}

void ConnectionFront::Run() {
  Clock::time_point look = Clock::now();
  heartbeat_.Begin();
  while (!stopping_.load()) {
    heartbeat_.Beat();
    std::array<epoll_event, kAtOnce> events;
    const int count =
        epoll_wait(epoll_.get(), events.data(), kAtOnce, static_cast<int>(kTick.count()));
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
    if (Clock::now() >= look) {
      CloseOverdue();
      look = Clock::now() + kTick;
    }
    HandOffWaiting();
  }
  heartbeat_.End();
}

void ConnectionFront::AcceptAll() {
  for (int i = 0; i < kAtOnce; ++i) {
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
  PeerAddress place = AddressOf(from);
  const int on = 1;
  setsockopt(connection.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(connection.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &kUserTimeoutMs,
             sizeof kUserTimeoutMs);
  const std::lock_guard lock(mutex_);
  // The kernel assigns the lowest free number: all numbers below it are in use.
  if (connection.get() >= limits_.descriptors) {
    if (strangers_.empty()) return CountClosed(FrontClose::kDescriptors, place.source);
    CloseOldestOf(BusiestSource(), FrontClose::kDescriptors);
  }
  if (const auto old = by_peer_.find(place.key); old != by_peer_.end()) Forget(old->second);
  const auto of_source = per_source_.find(place.source);
  if (of_source != per_source_.end() && of_source->second >= limits_.strangers_per_source) {
    CloseOldestOf(place.source, FrontClose::kSource);
  }
  if (strangers_.size() >= limits_.strangers)
    CloseOldestOf(BusiestSource(), FrontClose::kStrangers);
  const uint64_t id = next_id_++;
  epoll_event event{};
  // Edge-triggered, so each arrival is an event: within a tick a stranger could send so much that
  // gRPC takes hundreds of MiB for its streams.
  event.events = EPOLLRDHUP | EPOLLIN | EPOLLET;
  event.data.u64 = id;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, connection.get(), &event) != 0) {
    return CountClosed(FrontClose::kDescriptors, place.source);
  }
  ++per_source_[place.source];
  by_peer_[place.key] = id;
  const uint64_t cookie = SocketCookie(connection.get());
  strangers_.emplace(id, Stranger{.watch = std::move(connection),
                                  .cookie = cookie,
                                  .peer = std::move(place.key),
                                  .source = std::move(place.source),
                                  .deadline = Clock::now() + limits_.hello_time});
}

void ConnectionFront::HandOffWaiting() {
  const std::lock_guard lock(mutex_);
  for (int taken; (taken = TakeSlot()) >= 0;) to_hand_off_.push_back(taken);
  if (!to_hand_off_.empty()) taken_.notify_one();
}

void ConnectionFront::HandOffAll() {
  std::unique_lock lock(mutex_);
  while (true) {
    taken_.wait_for(lock, kHeapTick, [this] { return stopping_.load() || !to_hand_off_.empty(); });
    if (stopping_.load()) break;
    const std::vector<int> connections = std::exchange(to_hand_off_, {});
    lock.unlock();
    for (const int connection : connections) hand_off_(listener_.get(), connection);
    heap_.Look();
    lock.lock();
  }
  for (const int connection : to_hand_off_) close(connection);
}

int ConnectionFront::TakeSlot() {
  while (true) {
    Stranger* next = nullptr;
    size_t fewest = 0;
    for (const uint64_t id : waiting_) {
      Stranger& one = strangers_.at(id);
      const size_t taken = slots_.TakenBy(one.source);
      if (!slots_.HasRoomFor(one.source) || (next != nullptr && taken >= fewest)) continue;
      next = &one;
      fewest = taken;
      if (fewest == 0) break;
    }
    if (next == nullptr) return -1;
    const uint64_t id = by_peer_.at(next->peer);
    next->handed = fcntl(next->watch.get(), F_DUPFD_CLOEXEC, 0);
    if (next->handed < 0) {
      Close(id, FrontClose::kDescriptors);
      continue;
    }
    waiting_.erase(id);
    slots_.Take(next->source);
    next->stage = Stage::kHanded;
    next->handed_at = Clock::now();
    return next->handed;
  }
}

void ConnectionFront::CloseOverdue() {
  const std::lock_guard lock(mutex_);
  const Clock::time_point now = Clock::now();
  slots_.ReleaseSettled(now);
  for (auto one = strangers_.begin(); one != strangers_.end();) {
    const auto& [id, stranger] = *one++;
    // A held socket below its low-water mark causes no events.
    const bool held = stranger.stage == Stage::kHeld;
    if (stranger.deadline <= now) {
      Close(id, held ? FrontClose::kBytes : FrontClose::kTime);
    } else if (held && HasSentTooMuch(stranger)) {
      Close(id, FrontClose::kBytes);
    }
  }
  CloseForWaiting();
}

void ConnectionFront::CloseForWaiting() {
  const Clock::time_point overdue = Clock::now() - limits_.slot_time;
  std::unordered_map<std::string, size_t> keeps;  // slots by source after the closes below
  const auto slots_of = [&](const std::string& source) -> size_t& {
    return keeps.try_emplace(source, slots_.TakenBy(source)).first->second;
  };
  size_t coming = slots_.settling();
  for (const uint64_t id : waiting_) {
    if (coming > 0) {
      --coming;
      continue;
    }
    const std::string& source = strangers_.at(id).source;
    if (slots_.HasRoomFor(source)) continue;
    const auto victim = std::ranges::find_if(strangers_, [&](const auto& one) {
      const Stranger& other = one.second;
      return other.has_slot() && other.handed_at <= overdue &&
             (other.source == source || slots_of(other.source) > slots_of(source));
    });
    if (victim == strangers_.end()) continue;
    --slots_of(victim->second.source);
    ++slots_of(source);
    Close(victim->first, FrontClose::kSlots);
  }
}

void ConnectionFront::Received(uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = strangers_.find(id);
  if (found == strangers_.end()) return;
  Stranger& stranger = found->second;
  const int fd = stranger.watch.get();
  if (stranger.stage == Stage::kSilent) {
    const HelloState hello = LookAtHello(fd);
    if (hello == HelloState::kNoTls) return Close(id, FrontClose::kNoTls);
    if (hello == HelloState::kIncomplete) return;
    stranger.stage = Stage::kWaiting;
    stranger.deadline = Clock::now() + limits_.stranger_time;
    waiting_.insert(id);
  }
  if (stranger.stage == Stage::kHanded && ReceivedBytes(fd) > limits_.stranger_bytes) {
    Hold(stranger);
  }
  if (HasSentTooMuch(stranger)) Close(id, FrontClose::kBytes);
}

bool ConnectionFront::HasSentTooMuch(const Stranger& stranger) const {
  const int fd = stranger.watch.get();
  const uint64_t received = ReceivedBytes(fd);
  // A TLS client waits for the answer to its ClientHello.
  if (!stranger.has_slot()) return received > limits_.stranger_bytes;
  if (received > limits_.held_bytes) return true;
  // The kernel reports a socket as readable in spite of the low-water mark when its buffer is full
  // of small segments.
  return stranger.stage == Stage::kHeld && ReadBytes(fd) > stranger.taken + limits_.stranger_bytes;
}

void ConnectionFront::Hold(Stranger& stranger) {
  SetLowWater(stranger.watch.get(), INT_MAX);
  stranger.taken = ReadBytes(stranger.watch.get());
  stranger.stage = Stage::kHeld;
  stranger.deadline = std::min(stranger.deadline, Clock::now() + limits_.held_time);
}

void ConnectionFront::EndedByPeer(uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = strangers_.find(id);
  if (found == strangers_.end()) return;
  // A peer that closes only one direction would keep a connection that is not counted.
  ShutDown(found->second);
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
  ShutDown(stranger);
  Forget(id);
}

void ConnectionFront::ShutDown(const Stranger& stranger) {
  // After the shutdown gRPC would read what has arrived.
  if (stranger.stage == Stage::kHeld) {
    recv(stranger.watch.get(), nullptr, INT_MAX, MSG_TRUNC | MSG_DONTWAIT);
  }
  shutdown(stranger.watch.get(), SHUT_RDWR);
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
  if (stranger.has_slot()) {
    slots_.ReleaseAfter(stranger.source, stranger.handed, stranger.cookie, Clock::now());
  }
  waiting_.erase(id);
  strangers_.erase(found);
  heap_.CountEnded();
}

void ConnectionFront::Admit(const std::string& peer, const std::string& principal) {
  const std::lock_guard lock(mutex_);
  const auto found = by_peer_.find(peer);
  if (found == by_peer_.end()) return;
  const uint64_t id = found->second;
  Stranger& stranger = strangers_.at(id);
  if (!stranger.has_slot()) return;
  const auto verdict = members_.Add(principal, stranger.handed, stranger.cookie, Clock::now());
  using enum MemberConnections::Verdict;
  if (verdict != kAdded)
    return Close(id, verdict == kTooMany ? FrontClose::kMember : FrontClose::kCalls);
  SetReceiveBuffer(stranger.watch.get(), kMemberBuffer);
  SetLowWater(stranger.watch.get(), 1);
  slots_.Release(stranger.source);
  stranger.stage = Stage::kSilent;
  Forget(id);
  if (!waiting_.empty()) eventfd_write(wake_.get(), 1);
}

void ConnectionFront::Expel(const std::string& principal) {
  const std::lock_guard lock(mutex_);
  CountClosed(FrontClose::kCalls, principal, members_.Expel(principal, Clock::now()));
  heap_.CountEnded();
}

size_t ConnectionFront::strangers() const {
  const std::lock_guard lock(mutex_);
  return strangers_.size();
}

void ConnectionFront::CountClosed(FrontClose reason, const std::string& source, uint64_t count) {
  closed_[static_cast<size_t>(reason)].fetch_add(count);
  unreported_ += count;
  const Clock::time_point now = Clock::now();
  if (unreported_ == 0 || now < next_report_) return;
  spdlog::warn("closed {} connections at the limits of callers, the latest of {} (limit: {})",
               unreported_, source, kFrontCloseNames[static_cast<size_t>(reason)]);
  unreported_ = 0;
  next_report_ = now + kReportEvery;
}

}  // namespace rocegw::server
