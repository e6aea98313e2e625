// SPDX-License-Identifier: Apache-2.0
// Unreliable datagrams: sizes, immediate, the GRH area, answers to where a datagram came from,
// wrong Q_Keys.
#include <arpa/inet.h>

#include <cstring>
#include <random>
#include <sstream>

#include "tests/interop/rdma_check/arena.h"
#include "tests/interop/rdma_check/cases/cases.h"
#include "tests/interop/rdma_check/device.h"
#include "tests/interop/rdma_check/failure.h"

namespace rocegw::interop {
namespace {

constexpr uint32_t kGrh = 40;
constexpr uint32_t kQkey = 0x11111111;
constexpr uint32_t kDepth = 64;

struct QpDeleter {
  void operator()(ibv_qp* qp) const { ibv_destroy_qp(qp); }
};

class Datagrams {
 public:
  explicit Datagrams(Session& session)
      : local_(session.control.LocalAddress()),
        context_(OpenDeviceOf(local_)),
        pd_(ibv_alloc_pd(context_.get())),
        arena_(session.settings.seed + (session.is_client ? 1 : 2)),
        mr_(ibv_reg_mr(pd_.get(), arena_.at(0), Arena::kSize, IBV_ACCESS_LOCAL_WRITE)),
        send_(context_.get(), kDepth, session.settings.use_events),
        receive_(context_.get(), kDepth, session.settings.use_events) {
    CheckErrno(pd_ && mr_, "protection domain and memory region");
    gid_index_ = GidIndex(context_.get(), GidOf(local_));
    ibv_port_attr port{};
    CheckCode(ibv_query_port(context_.get(), 1, &port), "ibv_query_port");
    mtu_ = 128U << port.active_mtu;
    ibv_qp_init_attr init{};
    init.send_cq = send_.cq();
    init.recv_cq = receive_.cq();
    init.qp_type = IBV_QPT_UD;
    init.sq_sig_all = 1;
    init.cap = {.max_send_wr = kDepth,
                .max_recv_wr = kDepth,
                .max_send_sge = 2,
                .max_recv_sge = 2,
                .max_inline_data = 0};
    qp_.reset(ibv_create_qp(pd_.get(), &init));
    CheckErrno(qp_ != nullptr, "ibv_create_qp for datagrams");
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    attr.qkey = kQkey;
    CheckCode(ibv_modify_qp(qp_.get(), &attr,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
              "ibv_modify_qp to INIT");
    attr.qp_state = IBV_QPS_RTR;
    CheckCode(ibv_modify_qp(qp_.get(), &attr, IBV_QP_STATE), "ibv_modify_qp to RTR");
    attr.qp_state = IBV_QPS_RTS;
    CheckCode(ibv_modify_qp(qp_.get(), &attr, IBV_QP_STATE | IBV_QP_SQ_PSN),
              "ibv_modify_qp to RTS");
    std::istringstream theirs(
        session.control.Exchange(std::to_string(qp_->qp_num) + " " + std::to_string(mtu_)));
    uint32_t peer_mtu = 0;
    theirs >> peer_number_ >> peer_mtu;
    mtu_ = std::min(mtu_, peer_mtu);
    peer_ = session.control.PeerAddress();
    ibv_ah_attr address{};
    address.is_global = 1;
    address.port_num = 1;
    address.grh.dgid = GidOf(peer_);
    address.grh.sgid_index = gid_index_;
    address.grh.hop_limit = 64;
    handle_.reset(ibv_create_ah(pd_.get(), &address));
    CheckErrno(handle_ != nullptr, "ibv_create_ah");
  }

  void PostReceive(const Piece& data, uint64_t wr_id) {
    ibv_sge sge{.addr = arena_.address(data.offset), .length = data.length, .lkey = mr_->lkey};
    ibv_recv_wr wr{};
    wr.wr_id = wr_id;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    CheckCode(ibv_post_recv(qp_.get(), &wr, &bad), "ibv_post_recv");
  }

  void Send(const std::vector<Piece>& data, ibv_ah* handle, uint32_t number, uint32_t qkey,
            const uint32_t* immediate = nullptr) {
    std::vector<ibv_sge> sges;
    for (const Piece& piece : data) {
      sges.push_back(
          {.addr = arena_.address(piece.offset), .length = piece.length, .lkey = mr_->lkey});
    }
    ibv_send_wr wr{};
    wr.sg_list = sges.data();
    wr.num_sge = static_cast<int>(sges.size());
    wr.opcode = immediate != nullptr ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
    if (immediate != nullptr) wr.imm_data = htonl(*immediate);
    wr.wr.ud.ah = handle;
    wr.wr.ud.remote_qpn = number;
    wr.wr.ud.remote_qkey = qkey;
    ibv_send_wr* bad = nullptr;
    CheckCode(ibv_post_send(qp_.get(), &wr, &bad), "ibv_post_send");
    const ibv_wc wc = send_.WaitOne("datagram");
    Check(wc.status == IBV_WC_SUCCESS, "datagram: ", ibv_wc_status_str(wc.status));
  }

  // The GRH area of a received datagram: the IP header that it came with, an IPv4 one in the last
  // 20 bytes.
  void CheckGrh(const Piece& area) {
    const uint8_t* grh = arena_.at(area.offset);
    if (local_.ss_family == AF_INET6) {
      const ibv_gid source = GidOf(peer_);
      const ibv_gid target = GidOf(local_);
      Check(std::memcmp(grh + 8, source.raw, 16) == 0 && std::memcmp(grh + 24, target.raw, 16) == 0,
            "GRH addresses of a datagram differ");
    } else {
      const auto& source = reinterpret_cast<const sockaddr_in&>(peer_).sin_addr;
      const auto& target = reinterpret_cast<const sockaddr_in&>(local_).sin_addr;
      Check(grh[20] == 0x45, "no IPv4 header in the GRH area, but ", int{grh[20]});
      Check(std::memcmp(grh + 32, &source, 4) == 0 && std::memcmp(grh + 36, &target, 4) == 0,
            "IPv4 addresses in the GRH area of a datagram differ");
    }
    arena_.Accept({.offset = area.offset, .length = kGrh});
  }

  ibv_wc ExpectReceived(uint64_t wr_id, uint32_t length) {
    const ibv_wc wc = receive_.WaitOne("datagram to receive");
    Check(wc.status == IBV_WC_SUCCESS, "receive of a datagram: ", ibv_wc_status_str(wc.status));
    Check(wc.wr_id == wr_id, "datagram received with wr_id ", wc.wr_id, ", must be ", wr_id);
    Check(wc.byte_len == length + kGrh, "datagram of ", length, " bytes received as ", wc.byte_len);
    Check((wc.wc_flags & IBV_WC_GRH) != 0, "received datagram has no GRH flag");
    Check(wc.src_qp == peer_number_, "datagram is from queue pair ", wc.src_qp, ", must be ",
          peer_number_);
    return wc;
  }

  ibv_pd* pd() { return pd_.get(); }
  ibv_qp* qp() { return qp_.get(); }
  ibv_ah* handle() { return handle_.get(); }
  uint32_t peer_number() const { return peer_number_; }
  uint32_t mtu() const { return mtu_; }
  Arena& arena() { return arena_; }
  Completions& receive() { return receive_; }

 private:
  sockaddr_storage local_;
  sockaddr_storage peer_{};
  Owned<ibv_context> context_;
  Owned<ibv_pd> pd_;
  Arena arena_;
  Owned<ibv_mr> mr_;
  Completions send_;
  Completions receive_;
  std::unique_ptr<ibv_qp, QpDeleter> qp_;
  Owned<ibv_ah> handle_;
  uint8_t gid_index_ = 0;
  uint32_t mtu_ = 0;
  uint32_t peer_number_ = 0;
};

std::vector<Piece> WithGrh(const Piece& area) {
  return {{.offset = area.offset + kGrh, .length = area.length - kGrh}};
}

void Sizes(Session& session, bool by_client) {
  Datagrams datagrams(session);
  Arena& arena = datagrams.arena();
  const bool requester = session.is_client == by_client;
  Layout sender(session.settings.seed + 1);
  Layout receiver(session.settings.seed + 2);
  std::mt19937_64 random(session.settings.seed);
  const uint32_t mtu = datagrams.mtu();
  uint32_t index = 0;
  for (const uint32_t size : {0U, 1U, 2U, 3U, 64U, 255U, mtu / 2, mtu - 1, mtu}) {
    const uint64_t seed = random();
    const auto immediate = static_cast<uint32_t>(random());
    const bool with_immediate = index % 2 == 1;
    const std::vector<Piece> source = sender.TakeSplit(size, 1 + index % 2);
    const Piece target = receiver.Take(kGrh + size + 16);
    if (!requester) datagrams.PostReceive(target, index);
    session.control.Sync("posted");
    if (requester) {
      arena.Fill(source, seed);
      datagrams.Send(source, datagrams.handle(), datagrams.peer_number(), kQkey,
                     with_immediate ? &immediate : nullptr);
    } else {
      const ibv_wc wc = datagrams.ExpectReceived(index, size);
      Check(((wc.wc_flags & IBV_WC_WITH_IMM) != 0) == with_immediate, "immediate flag of datagram ",
            index);
      Check(!with_immediate || ntohl(wc.imm_data) == immediate, "immediate of datagram ", index,
            " differs");
      datagrams.CheckGrh(target);
      arena.Expect(WithGrh(target), seed, size);
    }
    ++index;
  }
  session.control.Sync("completed");
  arena.Verify("after datagrams");
  session.control.Sync("verified");
}

// The receiver answers with an address handle made from the completion alone.
void Reply(Session& session, bool by_client) {
  Datagrams datagrams(session);
  Arena& arena = datagrams.arena();
  const bool first = session.is_client == by_client;
  Layout layout(session.settings.seed);
  const Piece source = layout.Take(100);
  const Piece target = layout.Take(kGrh + 100);
  const uint64_t ask = session.settings.seed + 5;
  const uint64_t answer = session.settings.seed + 6;
  arena.Fill({source}, first ? ask : answer);
  datagrams.PostReceive(target, 1);
  session.control.Sync("posted");
  if (first) datagrams.Send({source}, datagrams.handle(), datagrams.peer_number(), kQkey);
  ibv_wc wc = datagrams.ExpectReceived(1, 100);
  if (!first) {
    Owned<ibv_ah> handle(ibv_create_ah_from_wc(
        datagrams.pd(), &wc, reinterpret_cast<ibv_grh*>(arena.at(target.offset)), 1));
    CheckErrno(handle != nullptr, "ibv_create_ah_from_wc");
    datagrams.Send({source}, handle.get(), wc.src_qp, kQkey);
  }
  datagrams.CheckGrh(target);
  arena.Expect(WithGrh(target), first ? answer : ask, 100);
  session.control.Sync("completed");
  arena.Verify("after an answered datagram");
  session.control.Sync("verified");
}

// A datagram with a wrong Q_Key vanishes; the next one with the right key arrives.
void WrongQkey(Session& session, bool by_client) {
  Datagrams datagrams(session);
  Arena& arena = datagrams.arena();
  const bool requester = session.is_client == by_client;
  Layout layout(session.settings.seed);
  const Piece source = layout.Take(100);
  const Piece target = layout.Take(kGrh + 100);
  const uint64_t seed = session.settings.seed + 7;
  if (!requester) datagrams.PostReceive(target, 1);
  session.control.Sync("posted");
  if (requester) {
    datagrams.Send({source}, datagrams.handle(), datagrams.peer_number(), kQkey + 1);
    arena.Fill({source}, seed);
    datagrams.Send({source}, datagrams.handle(), datagrams.peer_number(), kQkey);
  } else {
    datagrams.ExpectReceived(1, 100);
    datagrams.CheckGrh(target);
    arena.Expect(WithGrh(target), seed, 100);
  }
  session.control.Sync("completed");
  arena.Verify("after a datagram with a wrong Q_Key");
  session.control.Sync("verified");
}

}  // namespace

std::vector<Case> DatagramCases() {
  return {{"datagram.sizes", true, Needs::kSocket, Sizes},
          {"datagram.reply", true, Needs::kSocket, Reply},
          {"datagram.wrong_qkey", true, Needs::kSocket, WrongQkey}};
}

}  // namespace rocegw::interop
