// SPDX-License-Identifier: Apache-2.0
// Memory windows: what their keys give away, and that it is taken back by whoever may.
#include <cerrno>
#include <cstring>

#include "tests/interop/rdma_check/cases/cases.h"
#include "tests/interop/rdma_check/connection.h"
#include "tests/interop/rdma_check/failure.h"
#include "tests/interop/rdma_check/place.h"
#include "tests/interop/rdma_check/transfer.h"

namespace rocegw::interop {
namespace {

constexpr uint32_t kOffset = 256;  // of the window in its region
constexpr uint32_t kLength = 128;
constexpr uint32_t kAccess = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

// The side whose memory it is: a region of its own that windows may be bound to.
class Owner {
 public:
  Owner(Connection& c, ibv_mw_type type) : c_(c) {
    const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND;
    mr_.reset(ibv_reg_mr(c.pd(), memory_, sizeof memory_, access));
    Check(mr_ != nullptr, "ibv_reg_mr with IBV_ACCESS_MW_BIND: ", strerror(errno));
    mw_ = ibv_alloc_mw(c.pd(), type);
    Check(mw_ != nullptr, "ibv_alloc_mw: ", strerror(errno));
  }
  ~Owner() { ibv_dealloc_mw(mw_); }
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;

  // The key that peers have to name from now on.
  uint32_t Bind(uint32_t offset = kOffset) {
    const ibv_mw_bind_info info{mr_.get(), Address(offset), kLength, kAccess};
    if (mw_->type == IBV_MW_TYPE_1) {
      ibv_mw_bind bind{1, IBV_SEND_SIGNALED, info};
      CheckCode(ibv_bind_mw(c_.qp(0), mw_, &bind), "ibv_bind_mw");
    } else {
      ibv_send_wr wr{};
      wr.wr_id = 1;
      wr.opcode = IBV_WR_BIND_MW;
      wr.send_flags = IBV_SEND_SIGNALED;
      wr.bind_mw = {mw_, ibv_inc_rkey(mw_->rkey), info};
      PostSend(c_.qp(0), &wr);
      mw_->rkey = wr.bind_mw.rkey;
    }
    Expect(IBV_WC_BIND_MW, "a bind");
    return mw_->rkey;
  }
  void Invalidate() {
    ibv_send_wr wr{};
    wr.wr_id = 1;
    wr.opcode = IBV_WR_LOCAL_INV;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.invalidate_rkey = mw_->rkey;
    PostSend(c_.qp(0), &wr);
    Expect(IBV_WC_LOCAL_INV, "a local invalidation");
  }
  void CheckBytes(uint32_t offset, uint8_t value, uint32_t length) const {
    for (uint32_t i = 0; i < length; ++i)
      Check(memory_[offset + i] == value, "byte ", offset + i, " is ", int{memory_[offset + i]});
  }
  uint64_t Address(uint32_t offset) const { return reinterpret_cast<uint64_t>(memory_) + offset; }
  // Its region is in use.
  void CheckHeld() {
    if (c_.local_is_rxe()) return;
    Check(ibv_dereg_mr(mr_.get()) == EBUSY, "a region with a window bound to it stays");
  }

 private:
  void Expect(ibv_wc_opcode opcode, const char* what) {
    const ibv_wc wc = c_.send().WaitOne(what);
    Check(wc.status == IBV_WC_SUCCESS, what, " ended with ", ibv_wc_status_str(wc.status));
    Check(wc.opcode == opcode, what, " completed as opcode ", int{wc.opcode});
  }

  Connection& c_;
  alignas(4096) uint8_t memory_[4096] = {};
  Owned<ibv_mr> mr_;
  ibv_mw* mw_ = nullptr;
};

ibv_wc Request(Connection& c, ibv_wr_opcode opcode, const Place& to, uint8_t value,
               uint32_t length) {
  std::memset(c.arena().at(0), value, length);
  ibv_sge sge{c.arena().address(0), length, c.mr()->lkey};
  ibv_send_wr wr{};
  wr.wr_id = 2;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = opcode;
  wr.send_flags = IBV_SEND_SIGNALED;
  if (opcode == IBV_WR_SEND_WITH_INV) {
    wr.invalidate_rkey = to.key;
  } else {
    wr.wr.rdma.remote_addr = to.address;
    wr.wr.rdma.rkey = to.key;
  }
  PostSend(c.qp(0), &wr);
  return c.send().WaitOne("a request");
}

void ExpectDone(Connection& c, ibv_wr_opcode opcode, const Place& to, uint8_t value,
                uint32_t length, const char* what) {
  const ibv_wc wc = Request(c, opcode, to, value, length);
  Check(wc.status == IBV_WC_SUCCESS, what, " ended with ", ibv_wc_status_str(wc.status));
}

void ExpectRefused(Connection& c, const Place& to, const char* what) {
  const ibv_wc wc = Request(c, IBV_WR_RDMA_WRITE, to, 99, 8);
  Check(wc.status == IBV_WC_REM_ACCESS_ERR, what, " ended with ", ibv_wc_status_str(wc.status));
}

// Bound, written and read through, taken back by the peer, bound anew, taken back here.
void Type2(Session& session, bool by_client) {
  Connection c(session, {});
  const bool requests = session.is_client == by_client;
  if (requests) {
    Place window = Tell(session, {});
    ExpectDone(c, IBV_WR_RDMA_WRITE, window, 7, kLength, "a WRITE of the whole window");
    ExpectDone(c, IBV_WR_RDMA_READ, window, 0, 16, "a READ of some of it");
    Check(*c.arena().at(15) == 7, "a READ brings what was written");
    ExpectDone(c, IBV_WR_SEND_WITH_INV, window, 1, 8, "a SEND with invalidation");
    window = Tell(session, {});
    ExpectDone(c, IBV_WR_RDMA_WRITE, {window.address + 8, window.key}, 8, 8, "a WRITE, bound anew");
    session.control.Sync("written");
    session.control.Sync("invalidated");
    ExpectRefused(c, window, "a WRITE by a key that was taken back");
    session.control.Sync("refused");
  } else {
    Owner owner(c, IBV_MW_TYPE_2);
    PostReceive(c, 0, {{64, 64}}, 3);
    const uint32_t key = owner.Bind();
    owner.CheckHeld();
    Tell(session, {owner.Address(kOffset), key});
    const ibv_wc wc = c.receive().WaitOne("a SEND with invalidation");
    Check(wc.status == IBV_WC_SUCCESS, "the receive ended with ", ibv_wc_status_str(wc.status));
    // Soft-RoCE hands out the kernel's number of the flag, which means something else to programs.
    const unsigned taken_back = c.local_is_rxe() ? 1u << 2 : unsigned{IBV_WC_WITH_INV};
    Check((wc.wc_flags & taken_back) != 0, "the receive has flags ", wc.wc_flags);
    Check(wc.invalidated_rkey == key, "it was ", wc.invalidated_rkey, ", not ", key);
    owner.CheckBytes(0, 0, kOffset);
    owner.CheckBytes(kOffset, 7, kLength);
    owner.CheckBytes(kOffset + kLength, 0, kOffset);
    Tell(session, {owner.Address(kOffset), owner.Bind()});
    session.control.Sync("written");
    owner.CheckBytes(kOffset + 8, 8, 8);
    owner.Invalidate();
    session.control.Sync("invalidated");
    session.control.Sync("refused");
    owner.CheckBytes(kOffset, 7, 8);
  }
  c.Close(session, by_client);
}

// Bound by a call of its own, and moved by the next.
void Type1(Session& session, bool by_client) {
  Connection c(session, {});
  const bool requests = session.is_client == by_client;
  if (requests) {
    const Place first = Tell(session, {});
    ExpectDone(c, IBV_WR_RDMA_WRITE, first, 5, kLength, "a WRITE");
    session.control.Sync("written");
    const Place second = Tell(session, {});
    ExpectDone(c, IBV_WR_RDMA_WRITE, second, 6, 8, "a WRITE where it has moved");
    ExpectRefused(c, first, "a WRITE by the key before");
    session.control.Sync("refused");
  } else {
    Owner owner(c, IBV_MW_TYPE_1);
    Tell(session, {owner.Address(kOffset), owner.Bind()});
    session.control.Sync("written");
    Tell(session, {owner.Address(2 * kOffset), owner.Bind(2 * kOffset)});
    session.control.Sync("refused");
    owner.CheckBytes(kOffset, 5, kLength);
    owner.CheckBytes(2 * kOffset, 6, 8);
    owner.CheckBytes(2 * kOffset + 8, 0, 8);
  }
  c.Close(session, by_client);
}

void BeyondTheWindow(Session& session, bool by_client) {
  Connection c(session, {});
  if (session.is_client == by_client) {
    const Place window = Tell(session, {});
    // Soft-RoCE looks at the region's end alone.
    if (!c.remote_is_rxe()) {
      ExpectRefused(c, {window.address + kLength - 7, window.key}, "a WRITE over the window's end");
    }
    session.control.Sync("refused");
  } else {
    Owner owner(c, IBV_MW_TYPE_2);
    Tell(session, {owner.Address(kOffset), owner.Bind()});
    session.control.Sync("refused");
    owner.CheckBytes(0, 0, 4096);
  }
  c.Close(session, by_client);
}

}  // namespace

std::vector<Case> WindowCases() {
  return {{"window.type1", true, Needs::kAnything, Type1},
          {"window.type2", true, Needs::kAnything, Type2},
          {"window.beyond", true, Needs::kAnything, BeyondTheWindow}};
}

}  // namespace rocegw::interop
