// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/descriptors/receiver_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "gateway/base/descriptor_message.h"
#include "gateway/session/descriptors/threadless_process.h"
#include "gateway/session/descriptors/unread_messages.h"
#include "gateway/session/object_bytes.h"

namespace rocegw::session {
namespace {

// Descriptors of an order: the program's connection, and the socket for the answer.
constexpr size_t kDescriptorsOfOrder = 2;
constexpr int kForkAgainMs = 10;
// Time after which a process counts as held up by a program: another one takes the next order.
constexpr int kHeldUpMs = 1;
// Time for which a message waits while too many descriptors of the daemon's user are in unread
// sockets (ETOOMANYREFS, unix(7)).
constexpr int kAgainMs = 20;
constexpr int kTries = 250;

// Tells a process what to do with the connection that it gets.
struct ReceiveOrder {
  bool discard = false;  // all messages; otherwise it takes one
  WantedDescriptor wanted;
};

struct Answer {
  bool received = false;
  bool costly = false;
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

// News from a process to its parent.
enum class News : uint8_t {
  kOrdered,  // The process has an order, and may be ready for another one soon.
  kLeaves,   // The process has an order, and ends after it.
  kReady,    // The process waits for orders.
  kDaemonEnded,
};

// Returns false if the parent waits for another process now.
bool Tell(const UniqueFd& parent, News news) {
  return ::write(parent.get(), &news, sizeof news) == sizeof news;
}

// Returns true if a process may go on after the order: what is wanted is of a kind whose close
// cannot be held up.
bool MayStay(const ReceiveOrder& order) {
  return !order.discard && order.wanted.kind != PassedKind::kFile &&
         order.wanted.kind != PassedKind::kNone;
}

// Steps back behind everything else on the machine: from here on the process works for a program
// that passed what it should not have, and nobody waits for its end but that program's connection.
void StepBack() {
  constexpr int kLowest = 19;
  (void)::setpriority(PRIO_PROCESS, 0, kLowest);
}

// Carries out an order. Returns true if the process has closed all that came with it; otherwise it
// must end.
bool CarryOut(const ReceiveOrder& order, DescriptorMessage message) {
  if (message.length != sizeof order || message.fds.size() != kDescriptorsOfOrder) return false;
  const int connection = message.fds[0].get();
  ReceivedDescriptor received;
  if (order.discard) {
    StepBack();
    received.passed.received = DiscardUnreadMessages(connection);
  } else {
    received = ReceiveAndJudge(connection, order.wanted);
  }
  PassedDescriptor& passed = received.passed;
  const bool harmless = MayStay(order) && passed.fd.valid();
  Answer answer{passed.received, !harmless, passed.status.error(), passed.device, passed.inode, {}};
  passed.status.text().copy(answer.reason.data(), answer.reason.size() - 1);
  const std::array<int, 1> fd{passed.fd.get()};
  (void)Send(message.fds[1], BytesOf(answer), std::span(fd).first(passed.fd.valid() ? 1 : 0));
  // The kernel closes the rest at the end of the process, and the socket for the answer after it.
  if (!harmless) {
    StepBack();
    ::_exit(0);
  }
  // In this order, too: the daemon takes the end of the answers for the end of everything.
  passed.fd.Reset();
  message.fds.clear();
  return true;
}

// Carries out orders until one leaves something whose close a program can hold up, or until the
// parent has not waited for it.
[[noreturn]] void Serve(const UniqueFd& orders, const UniqueFd& parent) {
  while (true) {
    ReceiveOrder order;
    DescriptorMessage message = ReceiveDescriptors(orders.get(), BytesOf(order), 0);
    const bool ended = message.length == 0 || (message.length < 0 && errno == ECONNRESET);
    // The parent may wait for another process since the last order. This one is carried out even
    // so.
    (void)Tell(parent, ended            ? News::kDaemonEnded
                       : MayStay(order) ? News::kOrdered
                                        : News::kLeaves);
    if (ended || !CarryOut(order, std::move(message)) || !Tell(parent, News::kReady)) ::_exit(0);
  }
}

// Waits for news of the process. Returns nothing if it has ended, or at the end of the time; -1:
// none.
std::optional<News> Hear(const UniqueFd& process, int within_ms) {
  News news = News::kOrdered;
  pollfd readable{process.get(), POLLIN, 0};
  int ready = 0;
  do {
    ready = ::poll(&readable, 1, within_ms);
  } while (ready < 0 && errno == EINTR);
  if (ready <= 0 || ::read(process.get(), &news, sizeof news) != sizeof news) return {};
  return news;
}

// Starts a process for the next orders. Returns false when the daemon has ended, true when another
// process must take the next order.
bool AwaitOrders(const UniqueFd& orders) {
  std::array<int, 2> ends{};
  const bool piped = ::pipe2(ends.data(), O_CLOEXEC) == 0;
  UniqueFd ours(piped ? ends[0] : -1);
  UniqueFd theirs(piped ? ends[1] : -1);
  const pid_t child = piped ? ::fork() : -1;
  if (child == 0) {
    ours.Reset();
    Serve(orders, theirs);
  }
  theirs.Reset();
  if (child < 0) {
    (void)::poll(nullptr, 0, kForkAgainMs);
    return true;
  }
  while (true) {
    const std::optional<News> news = Hear(ours, -1);
    if (news == News::kDaemonEnded) return false;
    if (!news || news == News::kLeaves) return true;
    if (news == News::kOrdered && Hear(ours, kHeldUpMs) != News::kReady) return true;
  }
}

void Run(UniqueFd orders) {
  while (AwaitOrders(orders)) {
  }
}

// Gives an order and waits for its answer. Adds what to wait for at the end to `left`.
PassedDescriptor Give(const UniqueFd& orders, int socket, const ReceiveOrder& order,
                      std::vector<UniqueFd>& left) {
  PassedDescriptor passed;
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    passed.status = Status(errno, std::string("socketpair: ") + std::strerror(errno));
    return passed;
  }
  UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  if (const int error = Send(orders, BytesOf(order), std::array{socket, theirs.get()})) {
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
  passed.costly = answer.costly;
  passed.device = answer.device;
  passed.inode = answer.inode;
  return passed;
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
  return Give(orders_, socket, {false, wanted}, left);
}

bool ReceiverProcess::Discard(int socket) {
  std::vector<UniqueFd> left;
  const bool discarded = Give(orders_, socket, {true, {}}, left).received;
  Finish(left);
  return discarded;
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
