// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/descriptors/receiver_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "gateway/base/descriptor_message.h"
#include "gateway/session/descriptors/threadless_process.h"
#include "gateway/session/object_bytes.h"

namespace rocegw::session {
namespace {

// Descriptors of an order: the program's connection, and the socket for the answer.
constexpr size_t kDescriptorsOfOrder = 2;
constexpr int kForkAgainMs = 10;
// Time for which a message waits while too many descriptors of the daemon's user are in unread
// sockets (ETOOMANYREFS, unix(7)).
constexpr int kAgainMs = 20;
constexpr int kTries = 250;

struct Answer {
  bool received = false;
  int32_t error = 0;
  uint64_t device = 0;
  uint64_t inode = 0;
  std::array<char, 160> reason{};  // ends with 0
};

// Sends a message. Returns 0 or an errno value.
int Send(const UniqueFd& socket, std::span<const uint8_t> bytes, std::span<const int> fds) {
  for (int i = 0; i < kTries; ++i) {
    if (SendDescriptors(socket.get(), bytes, fds, 0) >= 0) return 0;
    if (errno != ETOOMANYREFS) break;
    (void)::poll(nullptr, 0, kAgainMs);
  }
  return errno;
}

// News from the process of one message to its parent.
enum class News : uint8_t { kOrdered, kDaemonEnded };

void Tell(UniqueFd& parent, News news) {
  (void)!::write(parent.get(), &news, sizeof news);
  parent.Reset();
}

// Receives one order and carries it out. The kernel closes what came with the message when the
// process ends, and the socket for the answer after that.
[[noreturn]] void ServeOne(UniqueFd& orders, UniqueFd parent) {
  WantedDescriptor wanted;
  const DescriptorMessage order = ReceiveDescriptors(orders.get(), BytesOf(wanted), 0);
  const bool ended = order.length == 0 || (order.length < 0 && errno == ECONNRESET);
  Tell(parent, ended ? News::kDaemonEnded : News::kOrdered);
  // A process that a program holds up keeps no order from failing when nobody else takes it.
  orders.Reset();
  if (order.length != sizeof wanted || order.fds.size() != kDescriptorsOfOrder) ::_exit(0);
  ReceivedDescriptor received = ReceiveAndJudge(order.fds[0].get(), wanted);
  const PassedDescriptor& passed = received.passed;
  Answer answer{passed.received, passed.status.error(), passed.device, passed.inode, {}};
  passed.status.text().copy(answer.reason.data(), answer.reason.size() - 1);
  const std::array<int, 1> fd{passed.fd.get()};
  (void)Send(order.fds[1], BytesOf(answer), std::span(fd).first(passed.fd.valid() ? 1 : 0));
  ::_exit(0);
}

// Returns true if the process of a message has an order, or has failed.
bool AwaitOrder(UniqueFd& orders) {
  std::array<int, 2> ends{};
  const bool piped = ::pipe2(ends.data(), O_CLOEXEC) == 0;
  const UniqueFd ours(piped ? ends[0] : -1);
  UniqueFd theirs(piped ? ends[1] : -1);
  const pid_t child = piped ? ::fork() : -1;
  if (child == 0) ServeOne(orders, std::move(theirs));
  theirs.Reset();
  if (child < 0) {
    (void)::poll(nullptr, 0, kForkAgainMs);
    return true;
  }
  News news = News::kOrdered;
  ssize_t got = 0;
  do {
    got = ::read(ours.get(), &news, sizeof news);
  } while (got < 0 && errno == EINTR);
  return news == News::kOrdered;
}

void Run(UniqueFd orders) {
  while (AwaitOrder(orders)) {
  }
}

}  // namespace

StatusOr<std::shared_ptr<ReceiverProcess>> ReceiverProcess::Start() {
  auto orders = StartThreadlessProcess("rocegw-receive", Run);
  if (!orders.ok()) return orders.status();
  auto kept = SocketKeeper::Start();
  if (!kept.ok()) return kept.status();
  return std::shared_ptr<ReceiverProcess>(
      new ReceiverProcess(std::move(*orders), std::move(*kept)));
}

PassedDescriptor ReceiverProcess::Take(int socket, const WantedDescriptor& wanted,
                                       std::vector<UniqueFd>& left) {
  PassedDescriptor passed;
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    passed.status = Status(errno, std::string("socketpair: ") + std::strerror(errno));
    return passed;
  }
  UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  if (const int error = Send(orders_, BytesOf(wanted), std::array{socket, theirs.get()})) {
    passed.status = Status(
        error, std::string("the process that receives descriptors: ") + std::strerror(error));
    return passed;
  }
  theirs.Reset();
  Answer answer;
  DescriptorMessage message = ReceiveDescriptors(ours.get(), BytesOf(answer), 0);
  left.push_back(std::move(ours));
  if (message.length != sizeof answer) {
    passed.status = Status(EIO, "the process that receives descriptors has failed");
    return passed;
  }
  answer.reason.back() = 0;
  if (answer.error != 0) passed.status = Status(answer.error, answer.reason.data());
  if (!message.fds.empty()) passed.fd = std::move(message.fds.front());
  passed.received = answer.received;
  passed.device = answer.device;
  passed.inode = answer.inode;
  return passed;
}

void ReceiverProcess::Finish(std::vector<UniqueFd>& left) {
  uint8_t ignored = 0;
  // The process sends nothing more: the call returns at its end.
  for (const UniqueFd& answer : left) {
    while (::recv(answer.get(), &ignored, sizeof ignored, 0) < 0 && errno == EINTR) {
    }
  }
  left.clear();
}

}  // namespace rocegw::session
