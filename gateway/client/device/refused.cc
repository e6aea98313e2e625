// SPDX-License-Identifier: Apache-2.0
// Functions that our devices do not have, and queries about the library itself.
#include <cerrno>

#include "gateway/client/device/objects.h"
#include "gateway/client/process/real.h"
#include "gateway/client/session/session.h"

using rocegw::client::Session;

namespace {

bool IsAttached() {
  Session* session = Session::Acquire();
  if (session == nullptr) return false;
  session->Release();
  return true;
}

}  // namespace

// Fork is always safe with our devices; the installed library must be told for its own.
ROCEGW_EXPORT int ibv_fork_init() {
  const auto real = ROCEGW_REAL(ibv_fork_init);
  const int result = real != nullptr ? real() : ENOSYS;
  return IsAttached() ? 0 : result;
}

ROCEGW_EXPORT ibv_fork_status ibv_is_fork_initialized() {
  const auto real = ROCEGW_REAL(ibv_is_fork_initialized);
  if (IsAttached() || real == nullptr) return IBV_FORK_UNNEEDED;
  return real();
}
