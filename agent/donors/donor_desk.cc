// SPDX-License-Identifier: Apache-2.0
#include "agent/donors/donor_desk.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "gateway/base/errno_status.h"
#include "gateway/disk/scoped_umask.h"
#include "gateway/process/socket/unix_socket.h"

namespace rocegw::agent {
namespace {

// From the connection to the answer; the controller's answer has 20 s.
constexpr Duration kLongestVisit = Seconds(25);
constexpr size_t kLongestQuestion = 1024;
constexpr mode_t kSocketMask = 0117;  // the user and its group may connect

}  // namespace

DonorDesk::DonorDesk(ControlLoop& loop, Find find, DonorCounters& counters)
    : loop_(loop), find_(std::move(find)), counters_(counters) {}

DonorDesk::~DonorDesk() {
  *alive_ = false;
  while (!visitors_.empty()) End(visitors_.begin()->first);
  loop_.Unwatch(watch_);
  if (listener_.valid()) unlink(path_.c_str());
}

Status DonorDesk::Open(const std::string& folder) {
  path_ = folder + "/" + far::kAgentSocket;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path_.size() >= sizeof address.sun_path) return {ENAMETOOLONG, path_ + ": too long"};
  constexpr process::SocketWords kWords = {"socket for programs", "donors_dir"};
  if (Status status = process::ClaimSocket(kWords, path_); !status.ok()) return status;
  std::memcpy(address.sun_path, path_.data(), path_.size());
  UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const auto* const name = reinterpret_cast<const sockaddr*>(&address);
  if (!listener.valid()) return ErrnoStatus(path_);
  // The socket has its mode from the start: the path may be another file afterwards. The owner
  // stays: a service has no right to change it.
  const auto bind_with_mode = [&] {
    const ScopedUmask mask(kSocketMask);
    return bind(listener.get(), name, sizeof address) == 0;
  };
  if (!bind_with_mode() || listen(listener.get(), kMostConnections) != 0) return ErrnoStatus(path_);
  listener_ = std::move(listener);
  watch_ = loop_.Watch(listener_.get(), EPOLLIN, [this](uint32_t) { Accept(); });
  return watch_ != 0 ? OkStatus() : Status(ENOMEM, path_ + ": cannot be watched");
}

void DonorDesk::Accept() {
  for (;;) {
    UniqueFd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) return;
    if (visitors_.size() == kMostConnections) {
      ++counters_.refused_questions;
      continue;
    }
    const VisitorId id = ++last_id_;
    Visitor& visitor = visitors_[id];
    visitor.socket = std::move(socket);
    visitor.watch = loop_.Watch(visitor.socket.get(), EPOLLIN, [this, id](uint32_t) { Read(id); });
    visitor.timer = loop_.At(ControlLoop::Now() + kLongestVisit, [this, id] { End(id); });
    if (visitor.watch == 0) End(id);
  }
}

void DonorDesk::Read(VisitorId id) {
  Visitor& visitor = visitors_.at(id);
  std::array<char, kLongestQuestion> buffer;
  const ssize_t got = recv(visitor.socket.get(), buffer.data(), buffer.size(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return End(id);
  visitor.text.append(buffer.data(), static_cast<size_t>(got));
  if (!far::IsComplete(visitor.text) && visitor.text.size() <= kLongestQuestion) return;
  // The answer is all that follows.
  loop_.Unwatch(visitor.watch);
  visitor.watch = 0;
  ++counters_.questions;
  const auto question = far::ReadQuestion(visitor.text);
  if (!question) {
    ++counters_.refused_questions;
    return Reply(id, far::RefusalText("the agent does not understand the question"));
  }
  find_(*question, [this, id, alive = alive_](const StatusOr<std::vector<far::NamedDonor>>& found) {
    if (!*alive) return;
    if (!found.ok()) ++counters_.refused_questions;
    Reply(id, found.ok() ? far::ToText(found.value()) : far::RefusalText(found.status().text()));
  });
}

// The text fits the socket's buffer: nothing else was sent.
void DonorDesk::Reply(VisitorId id, const std::string& text) {
  const auto visitor = visitors_.find(id);
  if (visitor == visitors_.end()) return;
  (void)!send(visitor->second.socket.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  End(id);
}

void DonorDesk::End(VisitorId id) {
  const auto visitor = visitors_.find(id);
  if (visitor == visitors_.end()) return;
  loop_.Unwatch(visitor->second.watch);
  loop_.Cancel(visitor->second.timer);
  visitors_.erase(visitor);
}

}  // namespace rocegw::agent
