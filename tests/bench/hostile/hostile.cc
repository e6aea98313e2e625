// SPDX-License-Identifier: Apache-2.0
// Programs that attack a gateway until they are killed; scripts/bench hostile runs them.
//
//   hostile ATTACK ATTACH_SOCKET: session_attacks.cc, object_attacks.cc, sharing_attacks.cc
//   hostile ATTACK ADDRESS GATEWAY: packet_attacks.cc, connection_attacks.cc
//   hostile ATTACK ADDRESS GATEWAY NUMBER ...: forged_attacks.cc, connection_attacks.cc
#include <csignal>
#include <cstdio>
#include <cstring>

#include "tests/bench/hostile/attach.h"

int main(int argc, char** argv) {
  using namespace rocegw::bench;  // NOLINT(google-build-using-namespace)
  std::signal(SIGPIPE, SIG_IGN);
  const auto run = [&](std::span<const Attack> attacks, int arguments) {
    for (const Attack& attack : attacks) {
      if (argc < arguments + 2 || std::strcmp(attack.name, argv[1]) != 0) continue;
      std::printf("attacking\n");
      std::fflush(stdout);
      attack.run(argc - 2, argv + 2);
      return true;
    }
    return false;
  };
  if (run(kSessionAttacks, 1) || run(kObjectAttacks, 1) || run(kSharingAttacks, 1) ||
      run(kPacketAttacks, 2) || run(kConnectionAttacks, 2) || run(kForgedAttacks, 3)) {
    return 0;
  }
  std::fprintf(stderr, "usage: hostile ATTACK ATTACH_SOCKET | ADDRESS GATEWAY [NUMBER ...]\n");
  return 2;
}
