// SPDX-License-Identifier: Apache-2.0
// Attacks on descriptors that cross the attach socket, and by processes that share a session.
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <deque>
#include <random>
#include <vector>

#include "tests/bench/hostile/attach.h"

namespace rocegw::bench {
namespace {

// Messages with 253 descriptors each, of sockets that hold themselves in flight and of eventfds.
void DescriptorFlood(int, char** arguments) {
  for (unsigned round = 0;; ++round) {
    Attach attach(arguments[0]);
    if (!attach.open() || (round % 2 == 0 && !attach.Hello())) continue;
    auto request = Attach::Request<rocegw_object_request>(ROCEGW_MSG_SET_MEMORY);
    request.header.request_id = round;
    const std::span bytes(reinterpret_cast<const uint8_t*>(&request), sizeof request);
    std::array<int, 2> pair{};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.data()) != 0) continue;
    const int event = eventfd(0, EFD_CLOEXEC);
    while (attach.SendWithMostDescriptors(bytes, attach.descriptor()) &&
           attach.SendWithMostDescriptors(bytes, pair[round % 2]) &&
           attach.SendWithMostDescriptors(bytes, event)) {
    }
    for (const int descriptor : {pair[0], pair[1], event}) close(descriptor);
  }
}

// Shortens, empties, seals, locks and moves the memory that the daemon shares, and lets the daemon
// read there.
void TruncatedMemory(int, char** arguments) {
  for (;;) {
    const auto attach = WithQueuePair(arguments[0]);
    if (attach == nullptr) continue;
    for (const auto& [number, chunk] : attach->chunks()) {
      (void)!ftruncate(chunk.memory, 0);
      (void)!ftruncate(chunk.memory, static_cast<off_t>(chunk.size) * 16);
      fallocate(chunk.memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                static_cast<off_t>(chunk.size));
      (void)!fchmod(chunk.memory, 0);
      flock flag{};
      flag.l_type = F_WRLCK;
      fcntl(chunk.memory, F_SETLK, &flag);
      fcntl(chunk.memory, F_SETLEASE, F_WRLCK);
      (void)!write(chunk.memory, "spoiled", 7);
      void* const moved = mremap(chunk.base, chunk.size, chunk.size, MREMAP_MAYMOVE);
      if (moved == MAP_FAILED) continue;
      fcntl(chunk.memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
    }
    const uint64_t one = 1;
    for (const int wake : attach->wakes()) (void)!write(wake, &one, sizeof one);
    rocegw_object_reply reply{};
    for (int i = 0; i < 20; ++i)
      (void)attach->Call(Attach::Request<rocegw_open_context>(ROCEGW_MSG_OPEN_CONTEXT), reply);
  }
}

// Asks for signals, blocking mode and other owners of every descriptor that the daemon gave.
void DescriptorFlags(int, char** arguments) {
  for (;;) {
    const auto attach = WithQueuePair(arguments[0]);
    if (attach == nullptr) continue;
    std::vector<int> all = attach->wakes();
    all.push_back(attach->descriptor());
    for (int round = 0; round < 200; ++round) {
      for (const int descriptor : all) {
        const int flags = fcntl(descriptor, F_GETFL);
        fcntl(descriptor, F_SETOWN, getppid());
        fcntl(descriptor, F_SETFL, (flags ^ O_NONBLOCK) | O_ASYNC);
        uint64_t huge = ~uint64_t{1};
        (void)!write(descriptor, &huge, sizeof huge);
        (void)!read(descriptor, &huge, 1);
        fcntl(descriptor, F_SETFL, O_NONBLOCK);
      }
    }
  }
}

// Children that are stopped somewhere in their set-up and stay so.
void StoppedAnywhere(int, char** arguments) {
  std::minstd_rand random(1);
  std::deque<pid_t> stopped;
  for (;;) {
    const pid_t child = fork();
    if (child == 0)
      for (;;) WithQueuePair(arguments[0]);
    usleep(random() % 8000);
    kill(child, SIGSTOP);
    stopped.push_back(child);
    if (stopped.size() < 64) continue;
    kill(stopped.front(), SIGKILL);
    waitpid(stopped.front(), nullptr, 0);
    stopped.pop_front();
  }
}

// Processes that send on one socket at the same time, after the one that greeted has ended.
void SharedSession(int, char** arguments) {
  for (;;) {
    const pid_t first = fork();
    if (first == 0) {
      Attach attach(arguments[0]);
      if (!attach.Hello()) _exit(0);
      for (int i = 0; i < 8; ++i) {
        if (fork() != 0) continue;
        for (int request = 0; request < 500; ++request) {
          const uint32_t context = attach.OpenContext();
          (void)attach.Cq(context, 64);
        }
        _exit(0);
      }
      _exit(0);
    }
    waitpid(first, nullptr, 0);
    usleep(20000);
  }
}

constexpr Attack kAttacks[] = {
    {"descriptor_flood", DescriptorFlood}, {"truncated_memory", TruncatedMemory},
    {"descriptor_flags", DescriptorFlags}, {"stopped_anywhere", StoppedAnywhere},
    {"shared_session", SharedSession},
};

}  // namespace

constinit const std::span<const Attack> kSharingAttacks(kAttacks);

}  // namespace rocegw::bench
