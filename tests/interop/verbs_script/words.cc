// SPDX-License-Identifier: Apache-2.0
#include "tests/interop/verbs_script/words.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "tests/interop/rdma_check/failure.h"

namespace rocegw::interop {
namespace {

constexpr std::array<const char*, 7> kStates = {"reset", "init", "rtr", "rts", "sqd", "sqe", "err"};

}  // namespace

std::string StateName(ibv_qp_state state) { return kStates.at(state); }

ibv_qp_state StateNamed(const std::string& name) {
  const auto* const found = std::find(kStates.begin(), kStates.end(), name);
  Check(found != kStates.end(), "no state '", name, "'");
  return static_cast<ibv_qp_state>(found - kStates.begin());
}

std::string StatusName(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_SUCCESS:
      return "ok";
    case IBV_WC_LOC_LEN_ERR:
      return "LOC_LEN_ERR";
    case IBV_WC_LOC_QP_OP_ERR:
      return "LOC_QP_OP_ERR";
    case IBV_WC_LOC_PROT_ERR:
      return "LOC_PROT_ERR";
    case IBV_WC_WR_FLUSH_ERR:
      return "WR_FLUSH_ERR";
    case IBV_WC_MW_BIND_ERR:
      return "MW_BIND_ERR";
    case IBV_WC_BAD_RESP_ERR:
      return "BAD_RESP_ERR";
    case IBV_WC_LOC_ACCESS_ERR:
      return "LOC_ACCESS_ERR";
    case IBV_WC_REM_INV_REQ_ERR:
      return "REM_INV_REQ_ERR";
    case IBV_WC_REM_ACCESS_ERR:
      return "REM_ACCESS_ERR";
    case IBV_WC_REM_OP_ERR:
      return "REM_OP_ERR";
    case IBV_WC_RETRY_EXC_ERR:
      return "RETRY_EXC_ERR";
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return "RNR_RETRY_EXC_ERR";
    case IBV_WC_REM_ABORT_ERR:
      return "REM_ABORT_ERR";
    case IBV_WC_FATAL_ERR:
      return "FATAL_ERR";
    case IBV_WC_GENERAL_ERR:
      return "GENERAL_ERR";
    default:
      return "another status";
  }
}

std::string OpcodeName(ibv_wc_opcode opcode) {
  switch (opcode) {
    case IBV_WC_SEND:
      return "SEND";
    case IBV_WC_RDMA_WRITE:
      return "RDMA_WRITE";
    case IBV_WC_RDMA_READ:
      return "RDMA_READ";
    case IBV_WC_COMP_SWAP:
      return "COMP_SWAP";
    case IBV_WC_FETCH_ADD:
      return "FETCH_ADD";
    case IBV_WC_RECV:
      return "RECV";
    case IBV_WC_RECV_RDMA_WITH_IMM:
      return "RECV_RDMA_WITH_IMM";
    default:
      return "another opcode";
  }
}

std::string ErrnoName(int error) {
  const char* const name = ::strerrorname_np(error);
  return name != nullptr ? name : std::to_string(error);
}

int Rights(const std::string& letters) {
  int rights = 0;
  for (const char letter : letters) {
    rights |= letter == 'l'   ? IBV_ACCESS_LOCAL_WRITE
              : letter == 'w' ? IBV_ACCESS_REMOTE_WRITE
              : letter == 'r' ? IBV_ACCESS_REMOTE_READ
              : letter == 'a' ? IBV_ACCESS_REMOTE_ATOMIC
                              : 0;
  }
  return rights;
}

}  // namespace rocegw::interop
