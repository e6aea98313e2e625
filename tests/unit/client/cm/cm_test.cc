// SPDX-License-Identifier: Apache-2.0
// rdma_cm calls in both roles: ids, binding, connections with and without a QP of the library.
#include <fcntl.h>
#include <gtest/gtest.h>

#include "gateway/client/rings/address_handle.h"
#include "tests/unit/client/cm/cm_fixture.h"

namespace rocegw::testing {
namespace {

TEST_F(CmTest, Channel_DescriptorIsTheProgramsOwn) {
  rdma_event_channel* channel = rdma_create_event_channel();
  ASSERT_NE(nullptr, channel);
  EXPECT_NE(0, fcntl(channel->fd, F_GETFD) & FD_CLOEXEC);
  fcntl(channel->fd, F_SETFL, O_NONBLOCK);
  rdma_cm_event* event = nullptr;
  EXPECT_EQ(-1, rdma_get_cm_event(channel, &event));
  EXPECT_EQ(EAGAIN, errno);
  rdma_destroy_event_channel(channel);
  EXPECT_EQ(1u, daemon_->Requests(ROCEGW_MSG_CM_DESTROY_CHANNEL).size());
}

TEST_F(CmTest, Channel_WithoutGateway_IsTheInstalledLibrarysMatter) {
  setenv("ROCEGW_SOCKET", "/tmp/rocegw-there-is-none.sock", 1);
  daemon_.reset();
  errno = 0;
  EXPECT_EQ(nullptr, rdma_create_event_channel());
  EXPECT_NE(0, errno);
}

TEST_F(CmTest, CreateId_TellsChannelSpaceAndCookie) {
  rdma_event_channel* channel = rdma_create_event_channel();
  rdma_cm_id* id = nullptr;
  ASSERT_EQ(0, rdma_create_id(channel, &id, this, RDMA_PS_UDP));
  const auto asked = daemon_->Last(ROCEGW_MSG_CM_CREATE_ID).As<rocegw_cm_create_id>();
  EXPECT_EQ(static_cast<uint32_t>(RDMA_PS_UDP), asked.port_space);
  EXPECT_NE(0u, asked.channel);
  EXPECT_NE(0u, asked.cookie);
  EXPECT_EQ(this, id->context);
  EXPECT_EQ(channel, id->channel);
  EXPECT_EQ(IBV_QPT_UD, id->qp_type);
  EXPECT_EQ(nullptr, id->verbs);
  End(channel, {id});
}

TEST_F(CmTest, JoinMulticast_AttachesTheQueuePair_UntilItIsLeft) {
  rdma_event_channel* channel = rdma_create_event_channel();
  rdma_cm_id* id = nullptr;
  ASSERT_EQ(0, rdma_create_id(channel, &id, this, RDMA_PS_UDP));
  sockaddr_in own = Address("10.0.0.1", 0);
  ASSERT_EQ(0, rdma_bind_addr(id, Generic(own)));
  ibv_qp_init_attr attr = QpAttr();
  attr.qp_type = IBV_QPT_UD;
  ASSERT_EQ(0, rdma_create_qp(id, nullptr, &attr));
  daemon_->OnRequest(ROCEGW_MSG_CM_JOIN, [this](const RecordedRequest& request) {
    const auto asked = request.As<rocegw_cm_join>();
    rocegw_cm_event event = Event(asked.id, RDMA_CM_EVENT_MULTICAST_JOIN);
    event.join = asked.join;
    event.param.qpn = 0xFFFFFF;
    event.param.qkey = 0x01234567;
    memset(event.dgid, 0, 10);
    event.dgid[10] = event.dgid[11] = 0xFF;
    memcpy(event.dgid + 12, asked.group.address, 4);
    daemon_->SendCmEvent(Known(asked.id).channel, event);
    return Bytes(rocegw_object_reply{});
  });
  sockaddr_in group = Address("239.1.2.3", 0);
  sockaddr_in other = Address("239.1.2.4", 0);
  int context = 0;
  ASSERT_EQ(0, rdma_join_multicast(id, Generic(group), &context));
  rdma_cm_event* event = Expect(channel, RDMA_CM_EVENT_MULTICAST_JOIN);
  ASSERT_NE(nullptr, event);
  EXPECT_EQ(0, event->status);
  EXPECT_EQ(&context, event->param.ud.private_data);
  EXPECT_EQ(0xFFFFFFu, event->param.ud.qp_num);
  EXPECT_EQ(0x01234567u, event->param.ud.qkey);
  EXPECT_EQ(239, event->param.ud.ah_attr.grh.dgid.raw[12]);
  EXPECT_EQ(0, rdma_ack_cm_event(event));
  const auto attached = daemon_->Last(ROCEGW_MSG_ATTACH_MULTICAST).As<rocegw_multicast>();
  EXPECT_EQ(id->qp->handle, attached.qp);
  EXPECT_EQ(239, attached.group[12]);
  EXPECT_EQ(0xFF, attached.group[11]);

  rdma_cm_join_mc_attr_ex ex{};
  ex.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS;
  ex.addr = Generic(other);
  EXPECT_EQ(-1, rdma_join_multicast_ex(id, &ex, nullptr));
  EXPECT_EQ(EINVAL, errno);
  ex.comp_mask |= RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
  ex.join_flags = RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER;
  ASSERT_EQ(0, rdma_join_multicast_ex(id, &ex, nullptr));
  ExpectAndAck(channel, RDMA_CM_EVENT_MULTICAST_JOIN);
  EXPECT_EQ(1u, daemon_->Requests(ROCEGW_MSG_ATTACH_MULTICAST).size()) << "it only sends";

  EXPECT_EQ(0, rdma_leave_multicast(id, Generic(other)));
  EXPECT_EQ(0u, daemon_->Requests(ROCEGW_MSG_DETACH_MULTICAST).size());
  EXPECT_EQ(0, rdma_leave_multicast(id, Generic(group)));
  EXPECT_EQ(1u, daemon_->Requests(ROCEGW_MSG_DETACH_MULTICAST).size());
  EXPECT_EQ(-1, rdma_leave_multicast(id, Generic(group)));
  EXPECT_EQ(EADDRNOTAVAIL, errno);

  daemon_->Fail(ROCEGW_MSG_ATTACH_MULTICAST, ENOMEM);
  ASSERT_EQ(0, rdma_join_multicast(id, Generic(group), nullptr));
  event = Expect(channel, RDMA_CM_EVENT_MULTICAST_ERROR);
  ASSERT_NE(nullptr, event);
  EXPECT_EQ(ENOMEM, event->status);
  EXPECT_EQ(0, rdma_ack_cm_event(event));
  daemon_->Fail(ROCEGW_MSG_ATTACH_MULTICAST, 0);
  ASSERT_EQ(0, rdma_join_multicast(id, Generic(other), nullptr));
  ExpectAndAck(channel, RDMA_CM_EVENT_MULTICAST_JOIN);
  rdma_destroy_qp(id);
  EXPECT_EQ(2u, daemon_->Requests(ROCEGW_MSG_DETACH_MULTICAST).size())
      << "a QP that is attached stays";
  End(channel, {id});
}

TEST_F(CmTest, BindAddr_KnownAddress_BindsTheDevice) {
  rdma_event_channel* channel = rdma_create_event_channel();
  rdma_cm_id* id = nullptr;
  ASSERT_EQ(0, rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP));
  sockaddr_in address = Address("10.0.0.1", 0);
  ASSERT_EQ(0, rdma_bind_addr(id, Generic(address)));
  EXPECT_EQ(40000, ntohs(rdma_get_src_port(id)));
  EXPECT_EQ(1, id->port_num);
  ASSERT_NE(nullptr, id->verbs);
  EXPECT_NE(nullptr, id->pd);
  int count = 0;
  ibv_context** devices = rdma_get_devices(&count);
  ASSERT_NE(nullptr, devices);
  EXPECT_EQ(1, count);
  EXPECT_EQ(devices[0], id->verbs);
  EXPECT_EQ(nullptr, devices[1]);
  rdma_free_devices(devices);
  End(channel, {id});
}

TEST_F(CmTest, BindAddr_WildcardOtherFamiliesAndRefusals) {
  rdma_event_channel* channel = rdma_create_event_channel();
  rdma_cm_id* id = nullptr;
  ASSERT_EQ(0, rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP));
  sockaddr_in address = Address("0.0.0.0", 18515);
  ASSERT_EQ(0, rdma_bind_addr(id, Generic(address)));
  EXPECT_EQ(nullptr, id->verbs);
  EXPECT_EQ(18515, ntohs(rdma_get_src_port(id)));
  sockaddr_storage other{};
  other.ss_family = 27;  // AF_IB: librdmacm probes for it
  EXPECT_EQ(-1, rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&other)));
  daemon_->Fail(ROCEGW_MSG_CM_BIND, EADDRINUSE);
  EXPECT_EQ(-1, rdma_bind_addr(id, Generic(address)));
  EXPECT_EQ(EADDRINUSE, errno);
  daemon_->Fail(ROCEGW_MSG_CM_BIND, 0);
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(99);
  six.sin6_scope_id = 3;
  inet_pton(AF_INET6, "fe80::1", &six.sin6_addr);
  ASSERT_EQ(0, rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&six)));
  const auto asked = daemon_->Last(ROCEGW_MSG_CM_BIND).As<rocegw_cm_bind>();
  EXPECT_EQ(AF_INET6, asked.address.family);
  EXPECT_EQ(99, asked.address.port);
  EXPECT_EQ(3u, asked.address.scope_id);
  EXPECT_EQ(0xfe, asked.address.address[0]);
  EXPECT_EQ(0, memcmp(&six.sin6_addr, &id->route.addr.src_sin6.sin6_addr, 16));
  End(channel, {id});
}

TEST_F(CmTest, Active_WithQp_IsMadeReadyBeforeTheProgramHears) {
  rdma_event_channel* channel = rdma_create_event_channel();
  rdma_cm_id* id = Resolved(channel);
  ASSERT_NE(nullptr, id);
  ASSERT_NE(nullptr, id->verbs);
  EXPECT_EQ(1, id->route.num_paths);
  EXPECT_EQ(IBV_MTU_1024, id->route.path_rec->mtu);
  EXPECT_EQ(7174, ntohs(rdma_get_dst_port(id)));
  ibv_qp_init_attr attr = QpAttr();
  ASSERT_EQ(0, rdma_create_qp(id, nullptr, &attr));
  ASSERT_NE(nullptr, id->qp);
  EXPECT_NE(nullptr, id->send_cq) << "queues are made where none are given";
  EXPECT_EQ(id, id->recv_cq->cq_context);
  EXPECT_EQ(IBV_QPS_INIT, id->qp->state);
  EXPECT_EQ(-1, rdma_create_qp(id, nullptr, &attr)) << "one is enough";
  rdma_conn_param param{};
  param.private_data = "hello";
  param.private_data_len = 5;
  param.responder_resources = 3;
  param.initiator_depth = 4;
  param.retry_count = 6;
  param.rnr_retry_count = 7;
  ASSERT_EQ(0, rdma_connect(id, &param));
  const auto asked = daemon_->Last(ROCEGW_MSG_CM_CONNECT).As<rocegw_cm_connect>();
  EXPECT_EQ(id->qp->qp_num, asked.param.qpn);
  EXPECT_EQ(IBV_QPT_RC, asked.param.qp_type);
  EXPECT_EQ(5, asked.param.private_length);
  EXPECT_EQ(0, memcmp(asked.param.private_data, "hello", 5));
  EXPECT_EQ(3, asked.param.responder_resources);
  EXPECT_EQ(4, asked.param.initiator_depth);
  EXPECT_EQ(6, asked.param.retry_count);
  EXPECT_EQ(7, asked.param.rnr_retry_count);

  rdma_cm_event* event = Expect(channel, RDMA_CM_EVENT_ESTABLISHED);
  ASSERT_NE(nullptr, event);
  EXPECT_EQ(id, event->id);
  EXPECT_EQ(56, event->param.conn.private_data_len);
  EXPECT_STREQ("from the peer", static_cast<const char*>(event->param.conn.private_data));
  EXPECT_EQ(5, event->param.conn.responder_resources);
  EXPECT_EQ(IBV_QPS_RTS, id->qp->state);
  EXPECT_EQ(ROCEGW_MSG_CM_ESTABLISH, daemon_->History().back()) << "the peer is told last";
  ExpectStep(ROCEGW_MSG_CM_ESTABLISH, event->id);
  EXPECT_EQ(0, rdma_ack_cm_event(event));

  ASSERT_EQ(0, rdma_disconnect(id));
  EXPECT_EQ(IBV_QPS_ERR, id->qp->state);
  ExpectStep(ROCEGW_MSG_CM_DISCONNECT, id);
  EXPECT_TRUE(daemon_->Requests(ROCEGW_MSG_MODIFY_QP).empty()) << "the daemon moves it";
  ExpectAndAck(channel, RDMA_CM_EVENT_DISCONNECTED);
  rdma_destroy_qp(id);
  EXPECT_EQ(nullptr, id->qp);
  EXPECT_EQ(nullptr, id->send_cq);
  End(channel, {id});
}

// The daemon reports a refusal of such a step as an event; a step in the wrong state gets its errno
// from the call.
TEST_F(CmTest, Steps_ThatCanOnlyBeRight_WantNoAnswer) {
  const auto wants_answer = [&](uint32_t type) {
    return daemon_->Last(type).As<rocegw_request>().request_id != 0;
  };
  rdma_event_channel* channel = rdma_create_event_channel();
  rdma_cm_id* id = ResolvedWithQp(channel);
  ASSERT_EQ(0, rdma_connect(id, nullptr));
  ExpectAndAck(channel, RDMA_CM_EVENT_ESTABLISHED);
  ASSERT_EQ(0, rdma_disconnect(id));
  ExpectAndAck(channel, RDMA_CM_EVENT_DISCONNECTED);
  for (const uint32_t type :
       {ROCEGW_MSG_CM_RESOLVE_ADDR, ROCEGW_MSG_CM_RESOLVE_ROUTE, ROCEGW_MSG_CM_CONNECT,
        ROCEGW_MSG_CM_ESTABLISH, ROCEGW_MSG_CM_DISCONNECT}) {
    EXPECT_EQ(1u, daemon_->Requests(type).size()) << type;
    EXPECT_FALSE(wants_answer(type)) << type;
  }
  daemon_->Fail(ROCEGW_MSG_CM_DISCONNECT, EINVAL);
  EXPECT_EQ(-1, rdma_disconnect(id)) << "it has done that";
  EXPECT_EQ(EINVAL, errno);
  daemon_->Fail(ROCEGW_MSG_CM_RESOLVE_ROUTE, EBUSY);
  EXPECT_EQ(-1, rdma_resolve_route(id, 1000));
  EXPECT_EQ(EBUSY, errno);
  daemon_->Fail(ROCEGW_MSG_CM_CONNECT, EISCONN);
  EXPECT_EQ(-1, rdma_connect(id, nullptr));
  EXPECT_EQ(EISCONN, errno);
  rdma_destroy_qp(id);
  EXPECT_EQ(0, rdma_destroy_id(id));
  rdma_destroy_event_channel(channel);
}

TEST_F(CmTest, ConnectError_BreaksTheQp) {
  rdma_event_channel* channel = rdma_create_event_channel();
  rdma_cm_id* id = Resolved(channel);
  ibv_qp_init_attr attr = QpAttr();
  ASSERT_EQ(0, rdma_create_qp(id, nullptr, &attr));
  automatic_ = false;
  ASSERT_EQ(0, rdma_connect(id, nullptr));
  Emit(daemon_->Last(ROCEGW_MSG_CM_CONNECT).As<rocegw_cm_connect>().id, RDMA_CM_EVENT_CONNECT_ERROR,
       -EAGAIN);
  rdma_cm_event* event = Expect(channel, RDMA_CM_EVENT_CONNECT_ERROR);
  ASSERT_NE(nullptr, event);
  EXPECT_EQ(-EAGAIN, event->status);
  EXPECT_EQ(IBV_QPS_ERR, id->qp->state);
  EXPECT_EQ(0, rdma_ack_cm_event(event));
  End(channel, {id});
}

TEST_F(CmTest, Active_QpOfTheProgram_IsLeftToTheProgram) {
  rdma_event_channel* channel = rdma_create_event_channel();
  rdma_cm_id* id = Resolved(channel);
  rdma_conn_param param{};
  param.qp_num = 0x777;
  ASSERT_EQ(0, rdma_connect(id, &param));
  EXPECT_EQ(0x777u, daemon_->Last(ROCEGW_MSG_CM_CONNECT).As<rocegw_cm_connect>().param.qpn);
  ExpectAndAck(channel, RDMA_CM_EVENT_CONNECT_RESPONSE);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  int mask = 0;
  ASSERT_EQ(0, rdma_init_qp_attr(id, &attr, &mask));
  EXPECT_NE(0, mask & IBV_QP_DEST_QPN);
  EXPECT_EQ(0x4321u, attr.dest_qp_num);
  EXPECT_EQ(1, attr.ah_attr.is_global);
  EXPECT_EQ(IBV_QPS_RTR, attr.qp_state);
  EXPECT_EQ(0, rdma_establish(id));
  EXPECT_EQ(1u, daemon_->Requests(ROCEGW_MSG_CM_ESTABLISH).size());
  EXPECT_EQ(0, rdma_notify(id, IBV_EVENT_COMM_EST));
  End(channel, {id});
}

TEST_F(CmTest, Connect_TooMuchPrivateData_IsRefusedHere) {
  rdma_event_channel* channel = rdma_create_event_channel();
  rdma_cm_id* id = Resolved(channel);
  char data[200] = {};
  rdma_conn_param param{};
  param.private_data = data;
  param.private_data_len = 57;
  EXPECT_EQ(-1, rdma_connect(id, &param));
  EXPECT_EQ(EINVAL, errno);
  EXPECT_EQ(-1, rdma_reject(id, data, 149));
  param.private_data_len = 197;
  EXPECT_EQ(-1, rdma_accept(id, &param));
  End(channel, {id});
}

TEST_F(CmTest, Rejected_BreaksTheQpAndCarriesReasonAndData) {
  automatic_ = true;
  rdma_event_channel* channel = rdma_create_event_channel();
  rdma_cm_id* id = ResolvedWithQp(channel);
  automatic_ = false;
  ASSERT_EQ(0, rdma_connect(id, nullptr));
  const uint32_t handle = daemon_->Last(ROCEGW_MSG_CM_CONNECT).As<rocegw_cm_connect>().id;
  Emit(handle, RDMA_CM_EVENT_REJECTED, 28);
  rdma_cm_event* event = Expect(channel, RDMA_CM_EVENT_REJECTED);
  ASSERT_NE(nullptr, event);
  EXPECT_EQ(28, event->status);
  EXPECT_EQ(IBV_QPS_ERR, id->qp->state);
  EXPECT_EQ(0, rdma_ack_cm_event(event));
  End(channel, {id});
}

TEST_F(CmTest, Passive_RequestMakesAnIdThatCanBeAccepted) {
  rdma_event_channel* channel = rdma_create_event_channel();
  rdma_cm_id* listener = Listening(channel, 3);
  const auto asked = daemon_->Last(ROCEGW_MSG_CM_LISTEN).As<rocegw_cm_listen>();
  EXPECT_EQ(3u, asked.backlog);
  EXPECT_EQ(41000, ntohs(rdma_get_src_port(listener)));
  const uint32_t handle = EmitRequest(asked.id);
  rdma_cm_event* event = Expect(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(nullptr, event);
  rdma_cm_id* id = event->id;
  EXPECT_NE(listener, id);
  EXPECT_EQ(listener, event->listen_id);
  EXPECT_EQ(this, id->context);
  EXPECT_EQ(channel, id->channel);
  EXPECT_NE(nullptr, id->verbs);
  EXPECT_EQ(7174, ntohs(rdma_get_dst_port(id)));
  EXPECT_STREQ("from the peer", static_cast<const char*>(event->param.conn.private_data));
  EXPECT_EQ(0, rdma_ack_cm_event(event));

  ibv_qp_init_attr attr = QpAttr();
  ASSERT_EQ(0, rdma_create_qp(id, nullptr, &attr));
  rdma_conn_param param{};
  param.responder_resources = 9;  // more than the peer will use
  param.initiator_depth = 2;
  ASSERT_EQ(0, rdma_accept(id, &param));
  EXPECT_EQ(ROCEGW_MSG_CM_ACCEPT, daemon_->History().back());
  const auto accept = daemon_->Last(ROCEGW_MSG_CM_ACCEPT).As<rocegw_cm_connect>();
  EXPECT_EQ(handle, accept.id);
  EXPECT_NE(0u, accept.cookie);
  EXPECT_EQ(5, accept.param.responder_resources);
  EXPECT_EQ(2, accept.param.initiator_depth);
  EXPECT_EQ(IBV_QPS_RTS, id->qp->state) << "ready before the peer hears";
  EXPECT_EQ(1u, accept.with_qp);
  EXPECT_EQ(handle, daemon_->Last(ROCEGW_MSG_CREATE_QP).As<rocegw_create_qp>().cm_id);
  EXPECT_TRUE(daemon_->Requests(ROCEGW_MSG_MODIFY_QP).empty()) << "the daemon moves it";
  EXPECT_EQ(0u, daemon_->Last(ROCEGW_MSG_CM_QUERY_ID).As<rocegw_request>().request_id)
      << "nobody waits for an answer";
  event = Expect(channel, RDMA_CM_EVENT_ESTABLISHED);
  ASSERT_NE(nullptr, event);
  EXPECT_EQ(id, event->id);
  EXPECT_EQ(0, rdma_ack_cm_event(event));
  End(channel, {id, listener});
}

TEST_F(CmTest, Passive_RefusalAndDestroyBeforeTheAck) {
  rdma_event_channel* channel = rdma_create_event_channel();
  rdma_cm_id* listener = Listening(channel, 1);
  EmitRequest(daemon_->Last(ROCEGW_MSG_CM_LISTEN).As<rocegw_cm_listen>().id);
  rdma_cm_event* event = Expect(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(nullptr, event);
  EXPECT_EQ(0, rdma_reject(event->id, "no", 2));
  const auto asked = daemon_->Last(ROCEGW_MSG_CM_REJECT).As<rocegw_cm_reject>();
  EXPECT_EQ(2, asked.private_length);
  EXPECT_EQ('n', asked.private_data[0]);
  EXPECT_EQ(0, rdma_destroy_id(event->id)) << "the event counts on the listener";
  EXPECT_EQ(0, rdma_ack_cm_event(event));
  End(channel, {listener});
}

TEST_F(CmTest, Datagram_QpIsReadyAtOnceAndEventsCarryAddresses) {
  rdma_event_channel* channel = rdma_create_event_channel();
  rdma_cm_id* id = BoundForDatagrams(channel);
  ibv_qp_init_attr attr = QpAttr();
  attr.qp_type = IBV_QPT_UD;
  ASSERT_EQ(0, rdma_create_qp(id, nullptr, &attr));
  EXPECT_EQ(IBV_QPS_RTS, id->qp->state);
  const uint32_t handle = NewestId();
  rocegw_cm_event record = Event(handle, RDMA_CM_EVENT_ESTABLISHED);
  record.param.qkey = RDMA_UDP_QKEY;
  record.sgid_index = 2;
  record.dgid[14] = 7;
  daemon_->SendCmEvent(Known(handle).channel, record);
  rdma_cm_event* event = Expect(channel, RDMA_CM_EVENT_ESTABLISHED);
  ASSERT_NE(nullptr, event);
  EXPECT_EQ(static_cast<uint32_t>(RDMA_UDP_QKEY), event->param.ud.qkey);
  EXPECT_EQ(0x4321u, event->param.ud.qp_num);
  EXPECT_EQ(1, event->param.ud.ah_attr.is_global);
  EXPECT_EQ(2, event->param.ud.ah_attr.grh.sgid_index);
  EXPECT_EQ(7, event->param.ud.ah_attr.grh.dgid.raw[14]);
  EXPECT_EQ(0, rdma_ack_cm_event(event));
  End(channel, {id});
}

// Form in which rsockets name themselves: an InfiniBand address, the LID of the port.
TEST_F(CmTest, Datagram_OwnPortByItsLid_IsItsFirstAddress_WhereThePdIsOurs) {
  rdma_event_channel* channel = rdma_create_event_channel();
  rdma_cm_id* id = BoundForDatagrams(channel);
  ibv_port_attr port;
  ASSERT_EQ(0, ibv_query_port(id->verbs, id->port_num, &port));
  ibv_gid own;
  ASSERT_EQ(0, ibv_query_gid(id->verbs, id->port_num, 0, &own));

  ibv_ah_attr attr{};
  attr.dlid = port.lid;
  attr.port_num = id->port_num;
  ibv_ah* ah = ibv_create_ah(id->pd, &attr);
  ASSERT_NE(nullptr, ah);
  const rocegw_address_vector& vector = reinterpret_cast<client::AddressHandle*>(ah)->vector;
  EXPECT_EQ(0, memcmp(own.raw, vector.dgid, sizeof own.raw));
  EXPECT_EQ(0, vector.sgid_index);
  EXPECT_NE(0, vector.hop_limit);
  EXPECT_EQ(0, attr.is_global) << "the program's own";
  EXPECT_EQ(0, ibv_destroy_ah(ah));

  const auto refused = [&attr](ibv_pd* pd) {
    errno = 0;
    return ibv_create_ah(pd, &attr) == nullptr && errno == EINVAL;
  };
  ibv_pd* pd = ibv_alloc_pd(id->verbs);
  ASSERT_NE(nullptr, pd);
  EXPECT_TRUE(refused(pd)) << "of the program's own";
  EXPECT_EQ(0, ibv_dealloc_pd(pd));
  attr.dlid = static_cast<uint16_t>(port.lid + 1);
  EXPECT_TRUE(refused(id->pd)) << "somebody else's LID";
  End(channel, {id});
}

}  // namespace
}  // namespace rocegw::testing
