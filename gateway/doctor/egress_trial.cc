// SPDX-License-Identifier: Apache-2.0
#include "gateway/doctor/egress_trial.h"

#include <netinet/in.h>
#include <sys/fsuid.h>
#include <sys/socket.h>

#include <cerrno>

#include "gateway/base/unique_fd.h"
#include "gateway/wire/datagram.h"

namespace rocegw::doctor {
namespace {

constexpr uid_t kNobody = 65534;

// Scope in which sockets of this thread belong to another user, which nftables matches (meta
// skuid).
class AsNobody {
 public:
  AsNobody() : before_(static_cast<uid_t>(setfsuid(kNobody))) {}
  ~AsNobody() { setfsuid(before_); }
  AsNobody(const AsNobody&) = delete;
  AsNobody& operator=(const AsNobody&) = delete;
  // Setting an impossible user changes nothing and returns the current one.
  bool succeeded() const { return static_cast<uid_t>(setfsuid(static_cast<uid_t>(-1))) == kNobody; }

 private:
  const uid_t before_;
};

}  // namespace

EgressGuard TryEgress() {
  const AsNobody nobody;
  if (!nobody.succeeded()) return EgressGuard::kNotTried;
  const UniqueFd fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return EgressGuard::kNotTried;
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(wire::kRocePort);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const uint8_t nothing = 0;
  if (sendto(fd.get(), &nothing, sizeof nothing, 0, reinterpret_cast<const sockaddr*>(&to),
             sizeof to) == sizeof nothing) {
    return EgressGuard::kOpen;
  }
  return errno == EPERM ? EgressGuard::kGuarded : EgressGuard::kNotTried;
}

}  // namespace rocegw::doctor
