// SPDX-License-Identifier: Apache-2.0
// How transcripts and scripts of verbs call what libibverbs has numbers for: the names of its
// headers without their prefixes; success is `ok`, states are in small letters.
#pragma once

#include <infiniband/verbs.h>

#include <string>

namespace rocegw::interop {

std::string StatusName(ibv_wc_status status);
std::string OpcodeName(ibv_wc_opcode opcode);
std::string ErrnoName(int error);
std::string StateName(ibv_qp_state state);
// Throws Failure when there is none of that name.
ibv_qp_state StateNamed(const std::string& name);
// Access flags by letters: l, w, r, a; others mean nothing.
int Rights(const std::string& letters);

}  // namespace rocegw::interop
