// SPDX-License-Identifier: Apache-2.0
// XRC from one gateway to another, through session servers and real workers: two programs share a
// domain, one queue pair of it serves both, and one of them is killed.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>

#include <array>
#include <cstring>
#include <memory>

#include "tests/support/qp/client_rings.h"
#include "tests/support/session/worker_host.h"

namespace rocegw::testing::xrc_traffic {
namespace {

constexpr uint32_t kDepth = 8;

// Program's rings as its library would use them.
struct Program {
  explicit Program(WorkerHost& host) : client(host.Join(session::kDefaultPool)) {
    EXPECT_TRUE(client->Hello());
    context = client->OpenContext();
    pd = client->AllocPd(context);
    cq = client->CreateCq(context, 64);
    completions = ClientCq(*client, cq);
    memory.resize(0x4000);
    const rocegw_mr_reply mr = client->RegMr(pd, Address(0), memory.size(), 15);
    EXPECT_EQ(client->error(), 0);
    lkey = mr.lkey;
    rkey = mr.rkey;
  }
  uint64_t Address(size_t offset) const {
    return reinterpret_cast<uint64_t>(memory.data()) + offset;
  }
  void OpenXrcd(int fd) {
    auto request = TestClient::Request<rocegw_open_xrcd>(ROCEGW_MSG_OPEN_XRCD);
    request.context = context;
    request.flags = ROCEGW_XRCD_CREATE;
    request.named = 1;
    xrcd = client->Call<rocegw_object_reply>(request, fd).handle;
    ASSERT_EQ(client->error(), 0);
  }
  void CreateSrq() {
    auto request = TestClient::Request<rocegw_create_srq>(ROCEGW_MSG_CREATE_SRQ);
    request.pd = pd;
    request.max_wr = kDepth;
    request.max_sge = 1;
    request.xrcd = xrcd;
    request.cq = cq.handle;
    srq = client->Call<rocegw_srq_reply>(request);
    ASSERT_EQ(client->error(), 0);
  }
  rocegw_qp_reply CreateReceiver() {
    auto request = TestClient::Request<rocegw_create_qp>(ROCEGW_MSG_CREATE_QP);
    request.type = ROCEGW_QPT_XRC_RECV;
    request.xrcd = xrcd;
    return client->Call<rocegw_qp_reply>(request);
  }
  rocegw_qp_reply OpenReceiver(uint32_t qpn) {
    auto request = TestClient::Request<rocegw_open_qp>(ROCEGW_MSG_OPEN_QP);
    request.xrcd = xrcd;
    request.qpn = qpn;
    return client->Call<rocegw_qp_reply>(request);
  }
  // Posts a receive of 512 bytes at that offset of its memory.
  void PostReceive(size_t offset) {
    const rocegw_sge sge{Address(offset), 512, lkey};
    ClientSrq(*client, srq).PostReceive(offset, {&sge, 1});
  }
  void PostSend(ClientQp& qp, rocegw_send_wqe wqe, uint32_t length) {
    wqe.flags = ROCEGW_WQE_SIGNALED;
    qp.PostSend(wqe, {{{Address(0), length, lkey}}});
    qp.Ring();
  }
  // Returns the bytes of a completed receive: in the ring, or in its memory.
  const uint8_t* BytesOf(const rocegw_cqe& cqe) {
    if ((cqe.flags & ROCEGW_CQE_PAYLOAD_IN_RING) == 0) return memory.data() + cqe.wr_id;
    return client->At(srq.payload) + size_t{cqe.ring_slot} * srq.payload_stride;
  }
  // Takes the next completion, if there is one.
  bool Poll(rocegw_cqe& out) {
    for (const rocegw_cqe& cqe : completions.Poll()) waiting.push_back(cqe);
    if (waiting.empty()) return false;
    out = waiting.front();
    waiting.erase(waiting.begin());
    return true;
  }

  std::unique_ptr<TestClient> client;
  uint32_t context = 0;
  uint32_t pd = 0;
  uint32_t xrcd = 0;
  uint32_t lkey = 0;
  uint32_t rkey = 0;
  rocegw_cq_reply cq{};
  rocegw_srq_reply srq{};
  std::vector<uint8_t> memory;
  ClientCq completions;
  std::vector<rocegw_cqe> waiting;
};

class XrcTraffic : public ::testing::Test {
 protected:
  void SetUp() override {
    near.TurnsWith(&far);
    far.TurnsWith(&near);
    file = UniqueFd(::memfd_create("xrc", MFD_CLOEXEC));
    for (auto& program : sharing) {
      program = std::make_unique<Program>(far);
      program->OpenXrcd(file.get());
      program->CreateSrq();
    }
    sender = std::make_unique<Program>(near);
    auto request = TestClient::QpRequest(sender->pd, sender->cq.handle, ROCEGW_QPT_XRC_SEND, 16);
    from = sender->client->Call<rocegw_qp_reply>(request);
    ASSERT_EQ(sender->client->error(), 0);
    queue = ClientQp(*sender->client, from);
    to = sharing[0]->CreateReceiver();
    ASSERT_EQ(sharing[0]->client->error(), 0);
    opened = sharing[1]->OpenReceiver(to.qpn);
    ASSERT_EQ(sharing[1]->client->error(), 0);
    // Connected by the program that has opened it.
    ASSERT_EQ(WorkerHost::Connect(*sharing[1]->client, opened.handle,
                                  {from.qpn, WorkerHost::GidOf(0)}, verbs::QpType::kXrcReceive),
              0);
    ASSERT_EQ(WorkerHost::Connect(*sender->client, from.handle, {to.qpn, WorkerHost::GidOf(1)},
                                  verbs::QpType::kXrcSend),
              0);
  }
  void TearDown() override {
    // Destroyed one after the other.
    near.TurnsWith(nullptr);
    far.TurnsWith(nullptr);
  }
  // Returns the sender's next completion.
  rocegw_cqe Sent() {
    rocegw_cqe cqe{};
    bool there = false;
    for (int i = 0; i < 200000 && !there; ++i) {
      near.Turn();
      there = sender->Poll(cqe);
      if (!there) ::sched_yield();
    }
    EXPECT_TRUE(there);
    return cqe;
  }
  rocegw_cqe Send(const Program& receiver, uint8_t fill, uint32_t length) {
    std::fill_n(sender->memory.begin(), length, fill);
    rocegw_send_wqe wqe{};
    wqe.opcode = ROCEGW_WR_SEND;
    wqe.u.rdma.peer = receiver.srq.number;
    sender->PostSend(queue, wqe, length);
    return Sent();
  }

  std::shared_ptr<port::PairLink> link = WorkerHost::LinkFor(2);
  WorkerHost near{2, {}, false, link, 0};
  WorkerHost far{2, {}, false, link, 1};
  UniqueFd file;
  std::array<std::unique_ptr<Program>, 2> sharing;
  std::unique_ptr<Program> sender;
  rocegw_qp_reply from{};
  ClientQp queue;  // queue of the sender
  rocegw_qp_reply to{};
  rocegw_qp_reply opened{};
};

TEST_F(XrcTraffic, OneConnection_ServesBothPrograms) {
  for (uint32_t i = 0; i < 6; ++i) {
    Program& receiver = *sharing[i % 2];
    const size_t offset = 0x1000 + 0x200 * size_t{i};
    receiver.PostReceive(offset);
    const uint32_t length = i < 2 ? 400 : 30;
    ASSERT_EQ(Send(receiver, static_cast<uint8_t>(i + 1), length).status, 0);
    rocegw_cqe cqe{};
    ASSERT_TRUE(receiver.Poll(cqe)) << i;
    EXPECT_EQ(cqe.wr_id, offset);
    EXPECT_EQ(cqe.qpn, to.qpn);
    EXPECT_EQ(cqe.qp_handle, receiver.srq.handle);
    EXPECT_EQ(cqe.byte_length, length);
    EXPECT_NE(cqe.flags & ROCEGW_CQE_XRC, 0);
    const uint8_t* const bytes = receiver.BytesOf(cqe);
    EXPECT_EQ(bytes[0], i + 1);
    EXPECT_EQ(bytes[length - 1], i + 1);
    EXPECT_FALSE(sharing[(i + 1) % 2]->Poll(cqe)) << "it is not the other's";
  }
}

TEST_F(XrcTraffic, WritesAndReads_ReachTheMemoryOfTheQueuesOwner) {
  Program& receiver = *sharing[1];
  std::fill_n(sender->memory.begin(), 300, 0x5A);
  rocegw_send_wqe wqe{};
  wqe.opcode = ROCEGW_WR_RDMA_WRITE;
  wqe.u.rdma.peer = receiver.srq.number;
  wqe.u.rdma.rkey = receiver.rkey;
  wqe.u.rdma.remote_address = receiver.Address(0x800);
  sender->PostSend(queue, wqe, 300);
  ASSERT_EQ(Sent().status, 0);
  EXPECT_EQ(receiver.memory[0x800 + 299], 0x5A);
  wqe.opcode = ROCEGW_WR_RDMA_READ;
  wqe.u.rdma.remote_address = receiver.Address(0x900);
  std::fill_n(receiver.memory.begin() + 0x900, 300, 0x77);
  sender->PostSend(queue, wqe, 300);
  ASSERT_EQ(Sent().status, 0);
  EXPECT_EQ(sender->memory[299], 0x77);
  // The other owner's key is not valid here.
  wqe.u.rdma.rkey = sharing[0]->rkey;
  sender->PostSend(queue, wqe, 300);
  EXPECT_EQ(Sent().status, static_cast<uint8_t>(verbs::WcStatus::kRemoteAccess));
}

// Kills the creator of the queue pair, which has a receive queue of its own.
TEST_F(XrcTraffic, DeadMaker_LeavesTheOtherOneServed) {
  sharing[0]->PostReceive(0x1000);
  ASSERT_EQ(Send(*sharing[0], 1, 400).status, 0);
  const uint32_t gone = sharing[0]->srq.number;
  sharing[0]->client->Disconnect();
  far.Settle();
  sharing[1]->PostReceive(0x1000);
  ASSERT_EQ(Send(*sharing[1], 2, 400).status, 0);
  rocegw_cqe cqe{};
  ASSERT_TRUE(sharing[1]->Poll(cqe));
  EXPECT_EQ(sharing[1]->BytesOf(cqe)[399], 2);
  sharing[0]->srq.number = gone;
  EXPECT_EQ(Send(*sharing[0], 3, 400).status,
            static_cast<uint8_t>(verbs::WcStatus::kRemoteInvalidRequest));
  sharing[1]->client->Disconnect();
  sender->client->Disconnect();
  far.Settle();
  EXPECT_EQ(far.server->session_count(), 0u);
}

}  // namespace
}  // namespace rocegw::testing::xrc_traffic
