// SPDX-License-Identifier: Apache-2.0
// Verbs objects through the attach protocol: requests of a correct library, and refusals.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <set>

#include "gateway/port/steering.h"
#include "gateway/verbs/types.h"
#include "tests/support/session/session_host.h"

namespace rocegw::testing {
namespace {

using verbs::QpState;

class Objects : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(client.Hello());
    context = client.OpenContext();
    ASSERT_NE(context, 0u);
    pd = client.AllocPd(context);
    ASSERT_NE(pd, 0u);
  }
  void TearDown() override { EXPECT_EQ(host.BrokenRules(), std::vector<std::string>()); }

  uint32_t Cq(uint32_t entries = 16) { return client.CreateCq(context, entries).handle; }
  FakeWorker::Session& On(size_t worker) { return host.workers[worker]->sessions.begin()->second; }

  rocegw_qp_attr ToRtr() {
    rocegw_qp_attr attr{};
    attr.qp_state = static_cast<uint32_t>(QpState::kRtr);
    attr.path_mtu = 3;
    attr.dest_qpn = 0x123456;
    attr.rq_psn = 5;
    attr.max_dest_rd_atomic = 16;
    attr.min_rnr_timer = 12;
    attr.av.hop_limit = 1;
    attr.av.dgid[10] = attr.av.dgid[11] = 0xFF;
    attr.av.dgid[12] = 192;
    attr.av.dgid[14] = 2;
    attr.av.dgid[15] = 9;
    return attr;
  }
  static constexpr uint32_t kInitMask =
      verbs::kAttrState | verbs::kAttrPkeyIndex | verbs::kAttrPort | verbs::kAttrAccessFlags;
  static constexpr uint32_t kRtrMask = verbs::kAttrState | verbs::kAttrAv | verbs::kAttrPathMtu |
                                       verbs::kAttrDestQpn | verbs::kAttrRqPsn |
                                       verbs::kAttrMaxDestRdAtomic | verbs::kAttrMinRnrTimer;
  int ToInit(uint32_t qp) {
    rocegw_qp_attr attr{};
    attr.qp_state = static_cast<uint32_t>(QpState::kInit);
    attr.port_num = 1;
    return client.Modify(qp, kInitMask, attr);
  }

  SessionHost host;
  TestClient client{host};
  uint32_t context = 0;
  uint32_t pd = 0;
};

TEST_F(Objects, OpenContext_AnnouncesWorkersWithLinesAndEventfds) {
  ASSERT_EQ(client.wake_fds.size(), 2u);
  for (uint32_t w = 0; w < 2; ++w) {
    ASSERT_TRUE(client.wake_fds[w].valid());
    ASSERT_NE(client.At(client.lines[w]), nullptr);
    On(w).link.line->need_wakeup = 77;
    EXPECT_EQ(reinterpret_cast<rocegw_worker_line*>(client.At(client.lines[w]))->need_wakeup, 77u);
    // Both sides have the same eventfd.
    const uint64_t one = 1;
    ASSERT_EQ(::write(client.wake_fds[w].get(), &one, sizeof one), 8);
    uint64_t value = 0;
    EXPECT_EQ(::read(On(w).link.wake_fd, &value, sizeof value), 8);
  }
  EXPECT_TRUE(client.chunks.begin()->second.read_only);
}

TEST_F(Objects, OpenContext_SecondOneLinksNothingAgain) {
  EXPECT_NE(client.OpenContext(), 0u);
  EXPECT_EQ(client.error(), 0);
  EXPECT_EQ(client.OpenContext(5), 0u);
  EXPECT_EQ(client.error(), ENODEV);
}

TEST_F(Objects, RegMr_OneKeyForBothKnownToAllWorkers) {
  uint8_t memory[64];
  const auto mr = client.RegMr(pd, reinterpret_cast<uint64_t>(memory), sizeof memory);
  ASSERT_EQ(client.error(), 0);
  EXPECT_EQ(mr.lkey, mr.rkey);
  EXPECT_EQ(mr.way, static_cast<uint32_t>(ROCEGW_MEMORY_CROSS));
  for (size_t w = 0; w < 2; ++w) {
    ASSERT_TRUE(On(w).mrs.contains(mr.rkey));
    const verbs::RegionConfig& config = On(w).mrs[mr.rkey];
    EXPECT_EQ(config.address, reinterpret_cast<uint64_t>(memory));
    EXPECT_EQ(config.length, sizeof memory);
    EXPECT_EQ(config.pd, pd);
    EXPECT_EQ(config.access, 7u);
    EXPECT_EQ(config.mr_handle, mr.handle);
  }
  client.Object(ROCEGW_MSG_DEREG_MR, mr.handle);
  EXPECT_EQ(client.error(), 0);
  for (size_t w = 0; w < 2; ++w) EXPECT_TRUE(On(w).mrs.empty());
  client.Object(ROCEGW_MSG_DEREG_MR, mr.handle);
  EXPECT_EQ(client.error(), EINVAL);
}

rocegw_rereg_mr Rereg(uint32_t mr, uint32_t pd, uint64_t address, uint64_t length,
                      uint32_t access) {
  auto rereg = TestClient::Request<rocegw_rereg_mr>(ROCEGW_MSG_REREG_MR);
  rereg.mr = mr;
  rereg.pd = pd;
  rereg.address = rereg.iova = address;
  rereg.length = length;
  rereg.access = access;
  return rereg;
}

TEST_F(Objects, ReregMr_ChangesEverythingUnderTheSameKey) {
  const uint32_t other = client.AllocPd(context);
  const auto mr = client.RegMr(pd, 4096, 64);
  const auto bytes = [this] {
    return host.server->services().pools.gateway().used(session::Resource::kRegisteredBytes);
  };
  for (const uint64_t length : {100, 64, 10}) {
    const auto again = client.Call<rocegw_mr_reply>(
        Rereg(mr.handle, other, 8192, length, verbs::kAccessRemoteRead));
    ASSERT_EQ(client.error(), 0);
    EXPECT_EQ(again.handle, mr.handle);
    EXPECT_EQ(again.lkey, mr.lkey);
    EXPECT_EQ(again.rkey, mr.rkey);
    EXPECT_EQ(bytes(), length) << "counted once";
    for (size_t w = 0; w < 2; ++w) {
      ASSERT_EQ(On(w).mrs.size(), 1u);
      const verbs::RegionConfig& config = On(w).mrs[mr.rkey];
      EXPECT_EQ(config.pd, other);
      EXPECT_EQ(config.address, 8192u);
      EXPECT_EQ(config.length, length);
      EXPECT_EQ(config.access, verbs::kAccessRemoteRead);
    }
  }
  EXPECT_EQ(host.server->services().pools.gateway().used(session::Resource::kMrs), 1u);
  client.Object(ROCEGW_MSG_DEALLOC_PD, other);
  EXPECT_EQ(client.error(), EBUSY);
  client.Object(ROCEGW_MSG_DEALLOC_PD, pd);
  EXPECT_EQ(client.error(), 0);
  client.Object(ROCEGW_MSG_DEREG_MR, mr.handle);
  client.Object(ROCEGW_MSG_DEALLOC_PD, other);
  EXPECT_EQ(client.error(), 0);
  EXPECT_EQ(bytes(), 0u);
}

TEST_F(Objects, ReregMr_Refused_TheRegionIsAsItWas) {
  const auto mr = client.RegMr(pd, 4096, 64, 7 | verbs::kAccessMwBind);
  const uint32_t elsewhere = client.AllocPd(client.OpenContext());
  const struct {
    const char* what;
    rocegw_rereg_mr request;
  } cases[] = {
      {"no such region", Rereg(mr.handle + 1, pd, 4096, 64, 7)},
      {"no such PD", Rereg(mr.handle, pd + 100, 4096, 64, 7)},
      {"PD of another context", Rereg(mr.handle, elsewhere, 4096, 64, 7)},
      {"empty", Rereg(mr.handle, pd, 4096, 0, 7)},
      {"wraps", Rereg(mr.handle, pd, ~uint64_t{0} - 10, 64, 7)},
      {"remote write alone", Rereg(mr.handle, pd, 4096, 64, verbs::kAccessRemoteWrite)},
  };
  for (const auto& c : cases) {
    client.Call<rocegw_mr_reply>(c.request);
    EXPECT_EQ(client.error(), EINVAL) << c.what;
  }
  const verbs::RegionConfig& config = On(0).mrs[mr.rkey];
  ASSERT_TRUE(config.windows->Enter());
  client.Call<rocegw_mr_reply>(Rereg(mr.handle, pd, 8192, 128, 7));
  EXPECT_EQ(client.error(), EBUSY) << "a window is bound to it";
  EXPECT_EQ(host.server->services().pools.gateway().used(session::Resource::kRegisteredBytes), 64u);
  EXPECT_EQ(config.address, 4096u);
  EXPECT_EQ(config.length, 64u);
  config.windows->Leave();
  client.Call<rocegw_mr_reply>(Rereg(mr.handle, pd, 8192, 128, 7 | verbs::kAccessMwBind));
  EXPECT_EQ(client.error(), 0);
  EXPECT_TRUE(On(0).mrs[mr.rkey].windows->Enter()) << "windows may be bound to it again";
  On(0).mrs[mr.rkey].windows->Leave();
}

TEST_F(Objects, RegMr_RefusesWhatMakesNoSense) {
  const struct {
    const char* what;
    uint32_t pd;
    uint64_t address, length;
    uint32_t access;
  } cases[] = {
      {"no such PD", pd + 100, 4096, 64, 0},
      {"empty", pd, 4096, 0, 0},
      {"wraps", pd, ~uint64_t{0} - 10, 64, 0},
      {"too long", pd, 0, uint64_t{1} << 60, 0},
      {"remote write without local write", pd, 4096, 64, verbs::kAccessRemoteWrite},
      {"remote atomic without local write", pd, 4096, 64, verbs::kAccessRemoteAtomic},
      {"unknown access bit", pd, 4096, 64, 1u << 31},
  };
  for (const auto& c : cases) {
    client.RegMr(c.pd, c.address, c.length, c.access);
    EXPECT_EQ(client.error(), EINVAL) << c.what;
  }
  EXPECT_TRUE(On(0).mrs.empty());
  EXPECT_EQ(host.server->services().pools.gateway().used(session::Resource::kMrs), 0u);
  EXPECT_EQ(host.server->services().pools.gateway().used(session::Resource::kRegisteredBytes), 0u);
}

TEST_F(Objects, RegMr_Implicit_IsEverything_AndCountsAsNoBytes) {
  constexpr uint32_t kOnDemand = 64;
  client.RegMr(pd, 0, UINT64_MAX, verbs::kAccessLocalWrite);
  EXPECT_EQ(client.error(), EINVAL) << "not on demand";
  client.RegMr(pd, 0, UINT64_MAX - 1, kOnDemand);
  EXPECT_EQ(client.error(), EINVAL) << "not everything";
  client.RegMr(pd, 1, UINT64_MAX - 1, kOnDemand);
  EXPECT_EQ(client.error(), EINVAL);
  const auto mr = client.RegMr(pd, 0, UINT64_MAX, verbs::kAccessLocalWrite | kOnDemand);
  ASSERT_EQ(client.error(), 0);
  EXPECT_EQ(On(1).mrs[mr.rkey].length, UINT64_MAX);
  EXPECT_EQ(On(1).mrs[mr.rkey].access, uint32_t{verbs::kAccessLocalWrite});
  EXPECT_TRUE(On(1).mrs[mr.rkey].Holds(0x7FFF'0000'0000, 1 << 30));
  const auto used = [this](session::Resource what) {
    return host.server->services().pools.gateway().used(what);
  };
  EXPECT_EQ(used(session::Resource::kRegisteredBytes), 0u);
  EXPECT_EQ(used(session::Resource::kMrs), 1u);
  client.Object(ROCEGW_MSG_DEREG_MR, mr.handle);
  EXPECT_EQ(client.error(), 0);
  EXPECT_EQ(used(session::Resource::kMrs), 0u);
}

TEST_F(Objects, RegMr_WorkerRefuses_NothingRemains) {
  host.workers[1]->fail_next = ENOSPC;
  client.RegMr(pd, 4096, 64);
  EXPECT_EQ(client.error(), ENOSPC);
  for (size_t w = 0; w < 2; ++w) EXPECT_TRUE(On(w).mrs.empty());
  EXPECT_EQ(host.server->services().pools.gateway().used(session::Resource::kMrs), 0u);
  EXPECT_EQ(host.server->services().keys.in_use(), 0u);
}

TEST_F(Objects, CreateCq_RingsPerWorkerInReadOnlyMemory) {
  const auto cq = client.CreateCq(context, 100);
  ASSERT_EQ(client.error(), 0);
  EXPECT_EQ(cq.entries, 128u);
  EXPECT_EQ(cq.worker_count, 2u);
  EXPECT_TRUE(client.chunks[cq.rings.chunk].read_only);
  EXPECT_FALSE(client.chunks[cq.control.chunk].read_only);
  auto* const rings = reinterpret_cast<rocegw_cqe*>(client.At(cq.rings));
  auto* const control = reinterpret_cast<rocegw_cq_control*>(client.At(cq.control));
  ASSERT_NE(rings, nullptr);
  ASSERT_NE(control, nullptr);
  for (uint32_t w = 0; w < 2; ++w) {
    const verbs::CqConfig& config = On(w).cqs[cq.handle];
    EXPECT_EQ(config.entries, 128u);
    EXPECT_EQ(config.cookie, 0xC0u);
    EXPECT_EQ(config.event_fd, -1);
    config.ring[127].wr_id = 1000 + w;
    EXPECT_EQ(rings[w * 128 + 127].wr_id, 1000 + w);
    control->worker[w].consumer = 50 + w;
    EXPECT_EQ(config.control->worker[config.worker_slot].consumer, 50 + w);
  }
  client.Object(ROCEGW_MSG_DESTROY_CQ, cq.handle);
  EXPECT_EQ(client.error(), 0);
  EXPECT_TRUE(On(0).cqs.empty());
}

TEST_F(Objects, ResizeCq_NewRingsOnEveryWorker_OrTheOldOnes) {
  const auto cq = client.CreateCq(context, 100);
  auto request = TestClient::Request<rocegw_resize_cq>(ROCEGW_MSG_RESIZE_CQ);
  request.cq = cq.handle;
  request.entries = 1000;
  const auto larger = client.Call<rocegw_cq_reply>(request);
  ASSERT_EQ(client.error(), 0);
  EXPECT_EQ(larger.handle, cq.handle);
  EXPECT_EQ(larger.entries, 1024u);
  EXPECT_EQ(larger.worker_count, cq.worker_count);
  EXPECT_EQ(larger.control.offset, cq.control.offset);
  EXPECT_TRUE(client.chunks[larger.rings.chunk].read_only);
  for (size_t w = 0; w < host.workers.size(); ++w) {
    const verbs::CqConfig& config = On(w).cqs[cq.handle];
    EXPECT_EQ(config.entries, 1024u);
    config.ring->wr_id = 40 + w;
    const uint8_t* const theirs = client.At(larger.rings) + w * 1024 * sizeof(rocegw_cqe);
    EXPECT_EQ(reinterpret_cast<const rocegw_cqe*>(theirs)->wr_id, 40 + w);
  }
  rocegw_cqe* const old = On(0).cqs[cq.handle].ring;
  host.workers[1]->fail_next = ENOSPC;
  request.entries = 600;
  client.Call<rocegw_cq_reply>(request);
  EXPECT_EQ(client.error(), EINVAL) << "more waits than that, although it would fit";
  request.entries = 600;
  EXPECT_EQ(client.Call<rocegw_cq_reply>(request).entries, 1024u) << "the rings it has";
  EXPECT_EQ(client.error(), 0);
  host.workers[1]->fail_next = ENOSPC;
  request.entries = 16;
  client.Call<rocegw_cq_reply>(request);
  EXPECT_EQ(client.error(), EINVAL) << "more waits than that";
  EXPECT_EQ(On(0).cqs[cq.handle].ring, old);
  host.workers[1]->fail_next = ENOSPC;
  host.workers[1]->fail_after = 1;
  client.Call<rocegw_cq_reply>(request);
  EXPECT_EQ(client.error(), EINVAL) << "more came meanwhile";
  EXPECT_EQ(On(0).cqs[cq.handle].ring, old);
  EXPECT_EQ(On(0).cqs[cq.handle].entries, 1024u);
  request.entries = 0;
  client.Call<rocegw_cq_reply>(request);
  EXPECT_EQ(client.error(), EINVAL);
  request.entries = (1u << 20) + 1;
  client.Call<rocegw_cq_reply>(request);
  EXPECT_EQ(client.error(), EINVAL);
  request.cq = 99;
  client.Call<rocegw_cq_reply>(request);
  EXPECT_EQ(client.error(), EINVAL);
}

TEST_F(Objects, ModerateCq_IsToldToEveryWorker_WithOneCount) {
  const uint32_t cq = Cq();
  auto request = TestClient::Request<rocegw_moderate_cq>(ROCEGW_MSG_MODERATE_CQ);
  request.cq = cq;
  request.count = 7;
  request.period = 50;
  client.Call<rocegw_object_reply>(request);
  ASSERT_EQ(client.error(), 0);
  const worker::ModerateCq& first = On(0).moderated[cq];
  const worker::ModerateCq& second = On(1).moderated[cq];
  EXPECT_EQ(first.count, 7u);
  EXPECT_EQ(first.period, Microseconds(50));
  EXPECT_EQ(first.moderation, second.moderation);
  request.cq = 99;
  client.Call<rocegw_object_reply>(request);
  EXPECT_EQ(client.error(), EINVAL);
}

TEST_F(Objects, CreateCq_RefusesBadSizesAndChannels) {
  client.CreateCq(context, 0);
  EXPECT_EQ(client.error(), EINVAL);
  client.CreateCq(context, (1u << 20) + 1);
  EXPECT_EQ(client.error(), EINVAL);
  client.CreateCq(context, 16, 77);
  EXPECT_EQ(client.error(), EINVAL);
  client.CreateCq(context + 9, 16);
  EXPECT_EQ(client.error(), EINVAL);
}

TEST_F(Objects, CompletionChannel_WorkersWriteClientReads) {
  const uint32_t channel = client.CreateChannel(context);
  ASSERT_NE(channel, 0u);
  const UniqueFd events = std::move(client.received_fd);
  const auto cq = client.CreateCq(context, 16, channel);
  ASSERT_EQ(client.error(), 0);
  const rocegw_completion_event event{0xC0, cq.handle, 0};
  ASSERT_EQ(::send(On(1).cqs[cq.handle].event_fd, &event, sizeof event, MSG_DONTWAIT), 16);
  rocegw_completion_event got{};
  EXPECT_EQ(::recv(events.get(), &got, sizeof got, MSG_DONTWAIT), 16);
  EXPECT_EQ(got.cookie, 0xC0u);
  // The client's end blocks unless the program changes it, and refuses writes.
  EXPECT_EQ(::fcntl(events.get(), F_GETFL) & O_NONBLOCK, 0);
  EXPECT_EQ(::send(events.get(), &event, sizeof event, MSG_DONTWAIT | MSG_NOSIGNAL), -1);

  client.Object(ROCEGW_MSG_DESTROY_CHANNEL, channel);
  EXPECT_EQ(client.error(), EBUSY);
  host.workers[0]->cq_events[cq.handle] = 3;
  host.workers[1]->cq_events[cq.handle] = 4;
  EXPECT_EQ(client.Object(ROCEGW_MSG_DESTROY_CQ, cq.handle).events_reported, 7u);
  client.Object(ROCEGW_MSG_DESTROY_CHANNEL, channel);
  EXPECT_EQ(client.error(), 0);
}

TEST_F(Objects, CreateQp_LayoutIsWhatTheWorkerSees) {
  const uint32_t cq = Cq();
  auto create = TestClient::Request<rocegw_create_qp>(ROCEGW_MSG_CREATE_QP);
  create.pd = pd;
  create.send_cq = create.recv_cq = cq;
  create.type = ROCEGW_QPT_RC;
  create.max_send_wr = 100;
  create.max_recv_wr = 0;
  create.max_send_sge = 3;
  create.max_recv_sge = 2;
  create.max_inline = 220;
  create.cookie = 99;
  const auto qp = client.Call<rocegw_qp_reply>(create);
  ASSERT_EQ(client.error(), 0);
  EXPECT_EQ(qp.sq_entries, 128u);
  EXPECT_EQ(qp.rq_entries, 1u);
  EXPECT_EQ(qp.sq_payload_stride, 512u);
  EXPECT_EQ(qp.rq_payload_stride, 1024u);
  EXPECT_EQ(qp.sq.length, 128 * rocegw_sq_stride(3));
  EXPECT_EQ(qp.sq_payload.length, 128u * 512);
  EXPECT_EQ(qp.rq.length, rocegw_rq_stride(2));
  EXPECT_EQ(port::SteeringTable(2).WorkerOf(Qpn{qp.qpn}), qp.worker);

  const verbs::QpConfig& config = On(qp.worker).qps[qp.qpn].config;
  EXPECT_EQ(config.cookie, 99u);
  EXPECT_EQ(config.sq_stride, rocegw_sq_stride(3));
  EXPECT_EQ(config.rq_stride, rocegw_rq_stride(2));
  EXPECT_EQ(config.port_mtu, 3);
  ASSERT_NE(config.gids, nullptr);
  EXPECT_EQ(config.gids->entries[0], wire::Gid::FromV4(0xC0000201));
  std::memset(client.At(qp.sq), 0x5A, qp.sq.length);
  EXPECT_EQ(config.sq[qp.sq.length - 1], 0x5A);
  reinterpret_cast<rocegw_qp_control*>(client.At(qp.control))->sq_producer = 17;
  EXPECT_EQ(config.control->sq_producer, 17u);
  EXPECT_TRUE(client.chunks[qp.status.chunk].read_only);
  EXPECT_TRUE(client.chunks[qp.rq_payload.chunk].read_only);
  config.status->sq_released = 4;
  EXPECT_EQ(reinterpret_cast<rocegw_qp_status*>(client.At(qp.status))->sq_released, 4u);
  auto* const page = reinterpret_cast<rocegw_doorbell_page*>(client.At(qp.doorbell));
  page->leaf[qp.doorbell_bit / 64] = uint64_t{1} << (qp.doorbell_bit % 64);
  EXPECT_EQ(On(qp.worker).pages[config.doorbell_page]->leaf[config.doorbell_bit / 64],
            uint64_t{1} << (config.doorbell_bit % 64));
}

TEST_F(Objects, CreateQp_InlineData_AsMuchAsAListWouldTake) {
  const uint32_t cq = Cq();
  const struct {
    uint32_t depth, sges, asked, granted;
  } cases[] = {{100, 1, 0, 16},   {100, 4, 0, 64}, {100, 4, 65, 65},
               {256, 16, 0, 256}, {512, 4, 0, 0},  {512, 4, 100, 100}};
  for (const auto& c : cases) {
    auto create = TestClient::Request<rocegw_create_qp>(ROCEGW_MSG_CREATE_QP);
    create.pd = pd;
    create.send_cq = create.recv_cq = cq;
    create.type = ROCEGW_QPT_RC;
    create.max_send_wr = c.depth;
    create.max_recv_wr = create.max_recv_sge = 1;
    create.max_send_sge = c.sges;
    create.max_inline = c.asked;
    const auto qp = client.Call<rocegw_qp_reply>(create);
    ASSERT_EQ(client.error(), 0);
    EXPECT_EQ(qp.max_inline, c.granted) << c.depth << " " << c.sges << " " << c.asked;
    EXPECT_LE(qp.max_inline, qp.sq_payload_stride);
    EXPECT_EQ(On(qp.worker).qps[qp.qpn].config.max_inline, c.granted);
    client.Object(ROCEGW_MSG_DESTROY_QP, qp.handle);
  }
}

TEST_F(Objects, CreateQp_PayloadStrides_AtLeast256OrNone) {
  const uint32_t cq = Cq();
  const struct {
    uint32_t depth, stride;
  } cases[] = {{1, 1024}, {64, 1024}, {128, 512}, {256, 256}, {512, 0}, {16384, 0}};
  for (const auto& c : cases) {
    const auto qp = client.CreateQp(pd, cq, ROCEGW_QPT_RC, c.depth);
    ASSERT_EQ(client.error(), 0);
    EXPECT_EQ(qp.rq_payload_stride, c.stride) << c.depth;
    EXPECT_EQ(qp.sq_payload_stride, c.stride) << c.depth;
    EXPECT_EQ(qp.rq_payload.length, c.stride * c.depth);
    client.Object(ROCEGW_MSG_DESTROY_QP, qp.handle);
  }
}

TEST_F(Objects, CreateQp_RefusesWhatIsBeyondTheDevice) {
  const uint32_t cq = Cq();
  const uint32_t other_context = client.OpenContext();
  const uint32_t other_cq = client.CreateCq(other_context).handle;
  auto good = TestClient::Request<rocegw_create_qp>(ROCEGW_MSG_CREATE_QP);
  good.pd = pd;
  good.send_cq = good.recv_cq = cq;
  good.type = ROCEGW_QPT_UD;
  good.max_send_wr = good.max_recv_wr = 1;
  for (int which = 0; which < 10; ++which) {
    auto bad = good;
    switch (which) {
      case 0:
        bad.pd = 99;
        break;
      case 1:
        bad.send_cq = 99;
        break;
      case 2:
        bad.recv_cq = 0;
        break;
      case 3:
        bad.type = 1;
        break;
      case 4:
        bad.max_send_wr = 16385;
        break;
      case 5:
        bad.max_recv_wr = 0xFFFFFFFF;
        break;
      case 6:
        bad.max_send_sge = 17;
        break;
      case 7:
        bad.max_recv_sge = 17;
        break;
      case 8:
        bad.max_inline = 1025;
        break;
      case 9:
        bad.send_cq = other_cq;
        break;
    }
    client.Call<rocegw_qp_reply>(bad);
    EXPECT_EQ(client.error(), EINVAL) << which;
  }
  client.Call<rocegw_qp_reply>(good);
  EXPECT_EQ(client.error(), 0);
}

TEST_F(Objects, CreateQp_ManyAreSpreadAndHaveTheirOwnBits) {
  const uint32_t cq = Cq();
  std::set<uint32_t> numbers;
  std::array<size_t, 2> on_worker{};
  for (int i = 0; i < 200; ++i) {
    const auto qp = client.CreateQp(pd, cq, ROCEGW_QPT_RC, 1);
    ASSERT_EQ(client.error(), 0);
    numbers.insert(qp.qpn);
    ++on_worker[qp.worker];
  }
  EXPECT_EQ(numbers.size(), 200u);
  EXPECT_EQ(on_worker[0], 100u);
  EXPECT_EQ(on_worker[1], 100u);
}

TEST_F(Objects, CreateQp_MoreThanAPageOfBits_SecondPage) {
  SessionHost single(1);
  TestClient one(single);
  ASSERT_TRUE(one.Hello());
  const uint32_t c = one.OpenContext();
  const uint32_t p = one.AllocPd(c);
  const uint32_t cq = one.CreateCq(c).handle;
  for (uint32_t i = 0; i < ROCEGW_DOORBELL_BITS + 1; ++i) {
    one.CreateQp(p, cq, ROCEGW_QPT_RC, 1);
    ASSERT_EQ(one.error(), 0) << i;
  }
  EXPECT_EQ(single.workers[0]->sessions.begin()->second.pages.size(), 2u);
  EXPECT_EQ(single.BrokenRules(), std::vector<std::string>());
}

TEST_F(Objects, CreateQp_AllOfItsOwn_WaitsForNoWorker) {
  const uint32_t cq = Cq();
  for (auto& worker : host.workers) worker->fail_next = EIO;
  client.CreateQp(pd, cq);
  EXPECT_EQ(client.error(), 0);
}

TEST_F(Objects, Destroy_InUse_IsBusyUntilTheUsersAreGone) {
  const uint32_t cq = Cq();
  const auto qp = client.CreateQp(pd, cq);
  const auto mr = client.RegMr(pd, 4096, 64);
  client.Object(ROCEGW_MSG_DESTROY_CQ, cq);
  EXPECT_EQ(client.error(), EBUSY);
  client.Object(ROCEGW_MSG_DEALLOC_PD, pd);
  EXPECT_EQ(client.error(), EBUSY);
  client.Object(ROCEGW_MSG_DESTROY_QP, qp.handle);
  EXPECT_EQ(client.error(), 0);
  client.Object(ROCEGW_MSG_DEALLOC_PD, pd);
  EXPECT_EQ(client.error(), EBUSY);
  client.Object(ROCEGW_MSG_DEREG_MR, mr.handle);
  client.Object(ROCEGW_MSG_DEALLOC_PD, pd);
  EXPECT_EQ(client.error(), 0);
  client.Object(ROCEGW_MSG_DESTROY_CQ, cq);
  EXPECT_EQ(client.error(), 0);
}

TEST_F(Objects, DestroyedMemory_IsUsedAgain) {
  const uint32_t cq = Cq();
  client.CreateQp(pd, cq);
  const size_t chunks = client.chunks.size();
  for (int i = 0; i < 1000; ++i) {
    const auto qp = client.CreateQp(pd, cq);
    ASSERT_EQ(client.error(), 0);
    client.Object(ROCEGW_MSG_DESTROY_QP, qp.handle);
  }
  EXPECT_EQ(client.chunks.size(), chunks);
}

TEST_F(Objects, ModifyQp_ToRtr_TranslatesThePath) {
  const auto qp = client.CreateQp(pd, Cq());
  ASSERT_EQ(ToInit(qp.handle), 0);
  ASSERT_EQ(client.Modify(qp.handle, kRtrMask, ToRtr()), 0);
  const verbs::QpAttributes& seen = On(qp.worker).qps[qp.qpn].attributes;
  EXPECT_EQ(seen.state, QpState::kRtr);
  EXPECT_EQ(seen.dest_qpn, Qpn{0x123456});
  EXPECT_EQ(seen.path.source, wire::Gid::FromV4(0xC0000201));
  EXPECT_EQ(seen.path.destination, wire::Gid::FromV4(0xC0000209));
  EXPECT_EQ(seen.path.hop_limit, 64);
  EXPECT_EQ(seen.path.source_port & 0xC03F, 0xC000 | port::BucketOf(Qpn{0x123456}));
  EXPECT_EQ(reinterpret_cast<rocegw_qp_status*>(client.At(qp.status))->state, 2u);
}

// A new path leads to the queue pair's current peer, whatever was refused before.
TEST_F(Objects, ModifyQp_RefusedPeer_IsForgotten) {
  const auto qp = client.CreateQp(pd, Cq());
  ASSERT_EQ(ToInit(qp.handle), 0);
  rocegw_qp_attr attr = ToRtr();
  ASSERT_EQ(client.Modify(qp.handle, kRtrMask, attr), 0);
  attr.qp_state = static_cast<uint32_t>(QpState::kRts);
  ASSERT_EQ(client.Modify(qp.handle,
                          verbs::kAttrState | verbs::kAttrTimeout | verbs::kAttrRetryCnt |
                              verbs::kAttrRnrRetry | verbs::kAttrSqPsn | verbs::kAttrMaxQpRdAtomic,
                          attr),
            0);
  attr.dest_qpn = 0xABCDEF;
  ASSERT_EQ(client.Modify(qp.handle, verbs::kAttrDestQpn, attr), EINVAL);
  attr.qp_state = static_cast<uint32_t>(QpState::kSqd);
  ASSERT_EQ(client.Modify(qp.handle, verbs::kAttrState, attr), 0);
  ASSERT_EQ(client.Modify(qp.handle, verbs::kAttrAv, attr), 0);
  const verbs::QpAttributes& seen = On(qp.worker).qps[qp.qpn].attributes;
  EXPECT_EQ(seen.path.source_port & 0x3F, port::BucketOf(Qpn{0x123456}));
}

TEST_F(Objects, ModifyQp_RefusesWrongMaskMtuAndIndex) {
  const auto qp = client.CreateQp(pd, Cq());
  EXPECT_EQ(client.Modify(qp.handle, kRtrMask, ToRtr()), EINVAL) << "from RESET";
  ASSERT_EQ(ToInit(qp.handle), 0);
  auto attr = ToRtr();
  attr.path_mtu = 4;
  EXPECT_EQ(client.Modify(qp.handle, kRtrMask, attr), EINVAL) << "beyond the active MTU";
  attr = ToRtr();
  attr.av.sgid_index = 1;
  EXPECT_EQ(client.Modify(qp.handle, kRtrMask, attr), EINVAL) << "index without address";
  attr.av.sgid_index = 2;
  EXPECT_EQ(client.Modify(qp.handle, kRtrMask, attr), EINVAL) << "IPv6 source, IPv4 destination";
  attr.av.sgid_index = 200;
  EXPECT_EQ(client.Modify(qp.handle, kRtrMask, attr), EINVAL) << "no such index";
  EXPECT_EQ(client.Modify(999, kRtrMask, ToRtr()), EINVAL) << "no such QP";
}

TEST_F(Objects, QueryQp_TellsWhatWasSet) {
  const auto qp = client.CreateQp(pd, Cq());
  ASSERT_EQ(ToInit(qp.handle), 0);
  ASSERT_EQ(client.Modify(qp.handle, kRtrMask, ToRtr()), 0);
  auto query = TestClient::Request<rocegw_object_request>(ROCEGW_MSG_QUERY_QP);
  query.handle = qp.handle;
  const auto reply = client.Call<rocegw_query_qp_reply>(query);
  ASSERT_EQ(client.error(), 0);
  EXPECT_EQ(reply.attr.qp_state, 2u);
  EXPECT_EQ(reply.attr.dest_qpn, 0x123456u);
  EXPECT_EQ(reply.attr.rq_psn, 5u);
  EXPECT_EQ(reply.attr.av.dgid[15], 9);
  EXPECT_EQ(reply.max_send_wr, 16u);
}

TEST_F(Objects, AsyncEvent_ReachesTheQpsContextAndIsCounted) {
  const uint32_t other = client.OpenContext();
  const UniqueFd other_events = std::move(client.received_fd);
  ASSERT_NE(other, 0u);
  const uint32_t mine = client.OpenContext();
  const UniqueFd events = std::move(client.received_fd);
  const uint32_t my_pd = client.AllocPd(mine);
  const auto qp = client.CreateQp(my_pd, client.CreateCq(mine).handle);
  ASSERT_EQ(client.error(), 0);
  worker::AsyncEventRaised raised;
  raised.session = SessionId{host.workers[0]->sessions.begin()->first};
  raised.event = verbs::AsyncEvent::kQpFatal;
  raised.kind = ROCEGW_OBJECT_QP;
  raised.handle = qp.handle;
  raised.cookie = 9;
  raised.qpn = Qpn{qp.qpn};
  host.workers[qp.worker]->Raise({0, raised});
  raised.qpn = Qpn{qp.qpn ^ 1};  // number of an earlier owner of the handle
  host.workers[qp.worker]->Raise({0, raised});
  host.Settle();
  rocegw_async_event event{};
  ASSERT_EQ(::recv(events.get(), &event, sizeof event, MSG_DONTWAIT),
            static_cast<ssize_t>(sizeof event));
  EXPECT_EQ(event.type, 1u);
  EXPECT_EQ(event.cookie, 9u);
  EXPECT_EQ(event.handle, qp.handle);
  EXPECT_EQ(::recv(events.get(), &event, sizeof event, MSG_DONTWAIT), -1);
  EXPECT_EQ(::recv(other_events.get(), &event, sizeof event, MSG_DONTWAIT), -1);
  EXPECT_EQ(client.Object(ROCEGW_MSG_DESTROY_QP, qp.handle).events_reported, 1u);
}

TEST_F(Objects, DeviceChanges_ReachItsContexts) {
  const uint32_t other = client.OpenContext();
  ASSERT_NE(other, 0u);
  const UniqueFd events = std::move(client.received_fd);
  const auto next = [&] {
    rocegw_async_event event{};
    event.type = 1000;
    (void)!::recv(events.get(), &event, sizeof event, MSG_DONTWAIT);
    EXPECT_TRUE(event.type == 1000 || event.kind == ROCEGW_OBJECT_PORT);
    return event.type;
  };
  session::Device device = SessionHost::MakeDevice();
  device.up = false;
  host.server->UpdateDevice(0, device);
  EXPECT_EQ(next(), 10u);
  device.up = true;
  device.gids.push_back(wire::Gid::FromV4(0x0A0A0A0A));
  host.server->UpdateDevice(0, device);
  EXPECT_EQ(next(), 9u);
  EXPECT_EQ(next(), 18u);
  device.active_mtu = 5;
  host.server->UpdateDevice(0, device);
  EXPECT_EQ(next(), 1000u);
  // Queue pairs created from now on see the new address.
  const auto qp = client.CreateQp(pd, Cq());
  EXPECT_EQ(On(qp.worker).qps[qp.qpn].config.gids->entries[3], wire::Gid::FromV4(0x0A0A0A0A));
  EXPECT_EQ(On(qp.worker).qps[qp.qpn].config.port_mtu, 5);
}

TEST_F(Objects, CloseContext_TakesItsObjectsAndLeavesOthers) {
  const auto qp = client.CreateQp(pd, Cq());
  client.RegMr(pd, 4096, 64);
  const uint32_t other = client.OpenContext();
  const uint32_t other_pd = client.AllocPd(other);
  const auto kept = client.RegMr(other_pd, 4096, 64);
  client.Object(ROCEGW_MSG_CLOSE_CONTEXT, context);
  EXPECT_EQ(client.error(), 0);
  for (size_t w = 0; w < 2; ++w) {
    EXPECT_TRUE(On(w).qps.empty());
    EXPECT_TRUE(On(w).cqs.empty());
    EXPECT_EQ(On(w).mrs.size(), 1u);
    EXPECT_TRUE(On(w).mrs.contains(kept.rkey));
  }
  client.Object(ROCEGW_MSG_DESTROY_QP, qp.handle);
  EXPECT_EQ(client.error(), EINVAL);
  client.Object(ROCEGW_MSG_ALLOC_PD, context);
  EXPECT_EQ(client.error(), EINVAL);
}

TEST_F(Objects, Region_RegistersAsRemappedAndBothSeeIt) {
  auto create = TestClient::Request<rocegw_create_region>(ROCEGW_MSG_CREATE_REGION);
  create.address = 0x7F0000000000;
  create.length = 1 << 20;
  const auto region = client.Call<rocegw_object_reply>(create);
  ASSERT_EQ(client.error(), 0);
  const UniqueFd memory = std::move(client.received_fd);
  auto reg = TestClient::Request<rocegw_reg_mr>(ROCEGW_MSG_REG_MR);
  reg.pd = pd;
  reg.access = 7;
  reg.address = reg.iova = create.address + 4096;
  reg.length = 8192;
  reg.region = region.handle;
  reg.region_offset = 4096;
  const auto mr = client.Call<rocegw_mr_reply>(reg);
  ASSERT_EQ(client.error(), 0);
  EXPECT_EQ(mr.way, static_cast<uint32_t>(ROCEGW_MEMORY_REMAPPED));
  ASSERT_EQ(::pwrite(memory.get(), "hello", 5, 4096), 5);
  EXPECT_EQ(std::memcmp(On(0).mrs[mr.rkey].direct, "hello", 5), 0);
  EXPECT_EQ(::ftruncate(memory.get(), 0), -1);

  reg.region_offset = 0;
  client.Call<rocegw_mr_reply>(reg);
  EXPECT_EQ(client.error(), EINVAL) << "offset that does not fit the address";
  reg.address = reg.iova = create.address + create.length;
  reg.region_offset = create.length;
  client.Call<rocegw_mr_reply>(reg);
  EXPECT_EQ(client.error(), EINVAL) << "beyond the region";
  client.Object(ROCEGW_MSG_DESTROY_REGION, region.handle);
  EXPECT_EQ(client.error(), EBUSY);
  client.Object(ROCEGW_MSG_DEREG_MR, mr.handle);
  client.Object(ROCEGW_MSG_DESTROY_REGION, region.handle);
  EXPECT_EQ(client.error(), 0);
  EXPECT_EQ(host.server->services().pools.gateway().used(session::Resource::kRegisteredBytes), 0u);
}

// Whole pages are shared, the rest of the registration is not; only the rest counts again.
TEST_F(Objects, Region_HoldsPartOfARegistration) {
  auto create = TestClient::Request<rocegw_create_region>(ROCEGW_MSG_CREATE_REGION);
  create.address = 0x7F0000001000;
  create.length = 8192;
  const auto region = client.Call<rocegw_object_reply>(create);
  ASSERT_EQ(client.error(), 0);
  const UniqueFd memory = std::move(client.received_fd);
  auto reg = TestClient::Request<rocegw_reg_mr>(ROCEGW_MSG_REG_MR);
  reg.pd = pd;
  reg.access = 7;
  reg.address = reg.iova = create.address - 100;
  reg.length = 100 + 8192 + 200;
  reg.region = region.handle;
  reg.region_offset = uint64_t{0} - 100;
  const auto mr = client.Call<rocegw_mr_reply>(reg);
  ASSERT_EQ(client.error(), 0);
  EXPECT_EQ(mr.way, static_cast<uint32_t>(ROCEGW_MEMORY_REMAPPED));
  ASSERT_EQ(::pwrite(memory.get(), "hello", 5, 0), 5);
  const verbs::RegionConfig& config = On(0).mrs[mr.rkey];
  EXPECT_EQ(config.direct_from, 100u);
  EXPECT_EQ(config.direct_length, 8192u);
  ASSERT_NE(config.DirectAt(100, 5), nullptr);
  EXPECT_EQ(std::memcmp(config.DirectAt(100, 5), "hello", 5), 0);
  EXPECT_EQ(config.DirectAt(99, 5), nullptr);
  EXPECT_EQ(host.server->services().pools.gateway().used(session::Resource::kRegisteredBytes),
            8192u + 300u);
  client.Object(ROCEGW_MSG_DEREG_MR, mr.handle);
  client.Object(ROCEGW_MSG_DESTROY_REGION, region.handle);
  EXPECT_EQ(host.server->services().pools.gateway().used(session::Resource::kRegisteredBytes), 0u);
}

TEST_F(Objects, Limits_BeyondIsEnomem) {
  session::Options options;
  options.limits.qps = 1;
  options.limits.mrs = 1;
  options.limits.registered_bytes = 100;
  options.limits.cqs = 1;
  options.limits.pds = 1;
  SessionHost small(2, options);
  TestClient one(small);
  ASSERT_TRUE(one.Hello());
  const uint32_t c = one.OpenContext();
  const uint32_t p = one.AllocPd(c);
  EXPECT_EQ(one.AllocPd(c), 0u);
  EXPECT_EQ(one.error(), ENOMEM);
  const uint32_t cq = one.CreateCq(c).handle;
  one.CreateCq(c);
  EXPECT_EQ(one.error(), ENOMEM);
  const auto qp = one.CreateQp(p, cq);
  EXPECT_EQ(one.error(), 0);
  one.CreateQp(p, cq);
  EXPECT_EQ(one.error(), ENOMEM);
  one.RegMr(p, 4096, 101);
  EXPECT_EQ(one.error(), ENOMEM);
  const auto mr = one.RegMr(p, 4096, 50);
  EXPECT_EQ(one.error(), 0);
  one.Call<rocegw_mr_reply>(Rereg(mr.handle, p, 4096, 101, 7));
  EXPECT_EQ(one.error(), ENOMEM);
  one.Call<rocegw_mr_reply>(Rereg(mr.handle, p, 4096, 100, 7));
  EXPECT_EQ(one.error(), 0) << "what it has counts once";
  one.RegMr(p, 4096, 10);
  EXPECT_EQ(one.error(), ENOMEM);
  one.Object(ROCEGW_MSG_DESTROY_QP, qp.handle);
  one.CreateQp(p, cq);
  EXPECT_EQ(one.error(), 0) << "what was given back can be had again";
}

TEST_F(Objects, SegmentLimit_IsEnomemAndTheSessionLives) {
  session::Options options;
  options.limits.segment_bytes = 6 << 20;
  SessionHost small(1, options);
  TestClient one(small);
  ASSERT_TRUE(one.Hello());
  const uint32_t c = one.OpenContext();
  EXPECT_NE(one.CreateCq(c, 1024).handle, 0u);
  one.CreateCq(c, 1 << 20);
  EXPECT_EQ(one.error(), ENOMEM);
  EXPECT_NE(one.CreateCq(c, 1024).handle, 0u);
  EXPECT_LE(small.server->services().pools.gateway().used(session::Resource::kSegmentBytes),
            6u << 20);
}

TEST_F(Objects, SmallRings_ManyMessagesStillArriveInOrder) {
  SessionHost tight(2, {}, 2);
  TestClient one(tight);
  ASSERT_TRUE(one.Hello());
  const uint32_t c = one.OpenContext();
  const uint32_t p = one.AllocPd(c);
  const uint32_t cq = one.CreateCq(c).handle;
  for (int i = 0; i < 50; ++i) {
    one.CreateQp(p, cq);
    ASSERT_EQ(one.error(), 0);
    one.RegMr(p, 4096, 64);
    ASSERT_EQ(one.error(), 0);
  }
  one.Disconnect();
  tight.Settle();
  EXPECT_EQ(tight.LinkedObjects(), 0u);
  EXPECT_EQ(tight.BrokenRules(), std::vector<std::string>());
}

}  // namespace
}  // namespace rocegw::testing
