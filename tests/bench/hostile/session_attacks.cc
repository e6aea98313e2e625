// SPDX-License-Identifier: Apache-2.0
// Attacks on the attach socket itself and on what a session shares with the daemon.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <memory>
#include <random>

#include "tests/bench/hostile/attach.h"
#include "tests/bench/hostile/unanswered_files.h"

namespace rocegw::bench {
namespace {

using Bytes = std::vector<uint8_t>;

// Clears O_NONBLOCK of the eventfd that wakes the worker, then writes it and reads it empty in
// bursts: a worker that reads after its wait may find nothing and block. A further write would end
// that, so the attacker looks after each burst whether the worker still answers, and rests when it
// does not.
void BlockingWake(int, char** arguments) {
  std::minstd_rand random(static_cast<unsigned>(getpid()));
  for (;;) {
    const auto attach = WithQueuePair(arguments[0]);
    if (attach == nullptr || attach->wakes().empty()) continue;
    const int wake = attach->wakes()[0];
    const uint32_t context = attach->OpenContext();
    const uint32_t pd = attach->Pd(context);
    fcntl(wake, F_SETFL, fcntl(wake, F_GETFL) & ~O_NONBLOCK);
    for (;;) {
      for (unsigned i = 0, count = 1 + random() % 64; i < count; ++i) {
        const uint64_t one = 1;
        (void)!write(wake, &one, sizeof one);
        for (unsigned spin = random() % 512; spin > 0; --spin) asm volatile("" ::: "memory");
        uint64_t taken = 0;
        const iovec part{&taken, sizeof taken};
        (void)!preadv2(wake, &part, 1, -1, RWF_NOWAIT);
      }
      // Objects of a queue pair go through the worker.
      const uint32_t cq = attach->Cq(context, 1);
      rocegw_qp_reply reply{};
      if (cq == 0 || attach->Qp(pd, cq, 1, 1, reply) < 0) {
        // No answer within a second: the worker waits for this eventfd.
        if (attach->Hello()) break;
        for (;;) pause();
      }
      auto destroy = Attach::Request<rocegw_object_request>(ROCEGW_MSG_DESTROY_QP);
      destroy.handle = reply.handle;
      rocegw_object_reply done{};
      (void)attach->Call(destroy, done);
      destroy.header.type = ROCEGW_MSG_DESTROY_CQ;
      destroy.handle = cq;
      (void)attach->Call(destroy, done);
    }
  }
}

// A connected TCP socket with unsent data whose close() waits for ten seconds.
int LingeringSocket() {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int small = 1;
  setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof at;
  const int sender = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (bind(listener, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0 ||
      listen(listener, 1) != 0 ||
      getsockname(listener, reinterpret_cast<sockaddr*>(&at), &length) != 0) {
    return -1;
  }
  connect(sender, reinterpret_cast<sockaddr*>(&at), sizeof at);
  pollfd ready{sender, POLLOUT, 0};
  poll(&ready, 1, 1000);
  const Bytes filling(65536, 0x5A);
  while (send(sender, filling.data(), filling.size(), MSG_NOSIGNAL) > 0) {
  }
  fcntl(sender, F_SETFL, fcntl(sender, F_GETFL) & ~O_NONBLOCK);
  const linger wait{1, 10};
  setsockopt(sender, SOL_SOCKET, SO_LINGER, &wait, sizeof wait);
  // The listener stays open: a reset would empty the sender's queue.
  return sender;
}

// Passes such descriptors with the first message, a greeting or another request. The daemon still
// has to accept when the attacker closes its own descriptor, so the daemon has the last one.
// `make`: returns one. `discard`: gets it and whether it was sent.
template <typename Make, typename Discard>
[[noreturn]] void SendDescriptors(const char* path, bool greets, Make make, Discard discard) {
  auto hello = Attach::Request<rocegw_hello>(ROCEGW_MSG_HELLO);
  hello.magic = ROCEGW_ABI_MAGIC;
  hello.major = ROCEGW_ABI_MAJOR;
  hello.minor = ROCEGW_ABI_MINOR;
  hello.header.request_id = 1;
  auto other = Attach::Request<rocegw_object_request>(ROCEGW_MSG_SET_MEMORY);
  other.header.request_id = 77;
  for (;;) {
    const int descriptor = make();
    Attach attach(path);
    if (greets) {
      attach.SendBytes({reinterpret_cast<const uint8_t*>(&hello), sizeof hello}, descriptor);
    } else {
      attach.SendBytes({reinterpret_cast<const uint8_t*>(&other), sizeof other}, descriptor);
    }
    discard(descriptor, attach.open());
    usleep(100000);
  }
}

void SendLingeringSocket(const char* path, bool greets) {
  SendDescriptors(path, greets, LingeringSocket, [](int descriptor, bool sent) {
    // The close of one that was not sent would wait here.
    const linger at_once{1, 0};
    if (!sent) setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(descriptor);
  });
}
void Linger(int, char** arguments) { SendLingeringSocket(arguments[0], true); }
void LingerBeforeGreeting(int, char** arguments) { SendLingeringSocket(arguments[0], false); }

void SendUnansweredFile(const char* path, bool greets) {
  UnansweredFiles files;
  // Every close waits, the attacker's too.
  SendDescriptors(
      path, greets, [&] { return files.Open(); }, [](int, bool) {});
}
void UnansweredFile(int, char** arguments) { SendUnansweredFile(arguments[0], true); }
void UnansweredFileBeforeGreeting(int, char** arguments) {
  SendUnansweredFile(arguments[0], false);
}

// Leaves messages with files unread in more connections than the gateway accepts, each behind a
// message that is held up, and then makes the release of the files wait.
void UnreadFiles(int, char** arguments) {
  const UnansweredFiles files;
  auto request = Attach::Request<rocegw_object_request>(ROCEGW_MSG_SET_MEMORY);
  const std::span<const uint8_t> bytes{reinterpret_cast<const uint8_t*>(&request), sizeof request};
  std::vector<std::unique_ptr<Attach>> held;
  for (int i = 0; i < 200; ++i) {
    held.push_back(std::make_unique<Attach>(arguments[0]));
    held.back()->SendBytes(bytes, files.Open());
    for (int n = 0; n < 8; ++n) {
      const int descriptor = files.OpenAnswered();
      held.back()->SendBytes(bytes, descriptor);
      close(descriptor);
    }
  }
  files.WriteAnswered();
  puts("unread");
  fflush(stdout);
  pause();
}

// Connects and closes without a word.
void AttachStorm(int, char** arguments) {
  for (;;) const Attach attach(arguments[0]);
}

// Holds connections that never greet.
void SilentAttaches(int, char** arguments) {
  std::vector<std::unique_ptr<Attach>> held;
  for (;;) {
    auto attach = std::make_unique<Attach>(arguments[0]);
    if (attach->open() && held.size() < 900) {
      held.push_back(std::move(attach));
    } else {
      usleep(10000);
    }
  }
}

// Asks for answers with descriptors and reads none of them.
void UnreadAnswers(int, char** arguments) {
  std::vector<std::unique_ptr<Attach>> held;
  for (;;) {
    auto attach = std::make_unique<Attach>(arguments[0]);
    if (!attach->Hello()) {
      usleep(10000);
      continue;
    }
    const uint32_t context = attach->OpenContext();
    for (int i = 0; i < 4096; ++i) {
      auto request = Attach::Request<rocegw_object_request>(ROCEGW_MSG_CREATE_CHANNEL);
      request.handle = context;
      if (!attach->Send(request)) break;
    }
    if (held.size() > 16) held.erase(held.begin());
    held.push_back(std::move(attach));
  }
}

// Messages that are empty, cut off, too long, or of random bytes behind a plausible header.
void OddMessages(int, char** arguments) {
  std::minstd_rand random(1);
  for (;;) {
    Attach attach(arguments[0]);
    if (!attach.open() || ((random() & 1) != 0 && !attach.Hello())) continue;
    for (int i = 0; i < 16; ++i) {
      static constexpr std::array<size_t, 8> kLengths{0, 1, 15, 16, 17, 64, 4096, 65536};
      Bytes bytes(kLengths[random() % kLengths.size()]);
      for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
      rocegw_request header{static_cast<uint32_t>(random() % 90),
                            static_cast<uint32_t>(bytes.size()), random()};
      if (random() % 4 == 0) header.length = static_cast<uint32_t>(random());
      if (bytes.size() >= sizeof header) std::memcpy(bytes.data(), &header, sizeof header);
      if (!attach.SendBytes(bytes, random() % 8 == 0 ? STDIN_FILENO : -1)) break;
    }
  }
}

// Writes random bytes into all that the daemon shares writably, and rings.
void SharedMemoryChaos(int, char** arguments) {
  std::minstd_rand random(1);
  for (;;) {
    const auto attach = WithQueuePair(arguments[0]);
    if (attach == nullptr) continue;
    for (int round = 0; round < 50; ++round) {
      for (const auto& [number, chunk] : attach->chunks()) {
        if (!chunk.writable) continue;
        for (int i = 0; i < 64; ++i)
          chunk.base[random() % std::min<uint64_t>(chunk.size, 1 << 16)] =
              static_cast<uint8_t>(random());
      }
      const uint64_t one = 1;
      for (const int wake : attach->wakes()) (void)!write(wake, &one, sizeof one);
    }
  }
}

// Children that set up queue pairs and are killed after a random time.
void DieAnywhere(int, char** arguments) {
  std::minstd_rand random(1);
  for (;;) {
    std::array<pid_t, 8> children{};
    for (pid_t& child : children) {
      child = fork();
      if (child == 0)
        for (;;) WithQueuePair(arguments[0]);
    }
    for (const pid_t child : children) {
      usleep(random() % 5000);
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
  }
}

constexpr Attack kAttacks[] = {
    {"blocking_wake", BlockingWake},
    {"lingering_socket", Linger},
    {"lingering_socket_before_greeting", LingerBeforeGreeting},
    {"unanswered_file", UnansweredFile},
    {"unanswered_file_before_greeting", UnansweredFileBeforeGreeting},
    {"unread_files", UnreadFiles},
    {"attach_storm", AttachStorm},
    {"silent_attaches", SilentAttaches},
    {"unread_answers", UnreadAnswers},
    {"odd_messages", OddMessages},
    {"shared_memory_chaos", SharedMemoryChaos},
    {"die_anywhere", DieAnywhere},
};

}  // namespace

constinit const std::span<const Attack> kSessionAttacks(kAttacks);

}  // namespace rocegw::bench
