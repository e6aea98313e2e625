// SPDX-License-Identifier: Apache-2.0
// What the parts of FakeDaemon share.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "tests/unit/client/daemon/fake_daemon.h"

namespace rocegw::testing {

struct FakeDaemon::Connection {
  int socket = -1;
  bool announced = false;
  FakeChunk chunks[2];  // written by the client, and by the daemon
  std::vector<int> wake_fds;
  std::vector<rocegw_worker_line*> lines;
};

[[noreturn]] inline void Die(const char* what) {
  perror(what);
  abort();
}

template <typename T>
std::vector<uint8_t> Bytes(const T& value) {
  const auto* from = reinterpret_cast<const uint8_t*>(&value);
  return {from, from + sizeof value};
}

// `fd`: a descriptor to pass; -1: none.
void SendMessage(int socket, const std::vector<uint8_t>& bytes, int fd);

}  // namespace rocegw::testing
