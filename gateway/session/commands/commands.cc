// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/commands/commands.h"

#include "gateway/abi/rocegw_abi.h"

namespace rocegw::session {

Command FindCommand(uint32_t type) {
  switch (type) {
#define ROCEGW_CASE(type, function) \
  case ROCEGW_MSG_##type:           \
    return function;
    ROCEGW_COMMANDS(ROCEGW_CASE)
#undef ROCEGW_CASE
    default:
      return nullptr;
  }
}

}  // namespace rocegw::session
