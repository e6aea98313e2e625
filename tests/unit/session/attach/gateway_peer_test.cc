// SPDX-License-Identifier: Apache-2.0
// Two gateways and their programs: messages to the workers about a queue pair's peer, and a command
// that waits for discovery without delaying others. The test delivers the datagrams.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

#include "gateway/session/objects/session_costs.h"
#include "tests/support/session/session_host.h"

namespace rocegw::testing {
namespace {

using verbs::QpState;

constexpr uint32_t kHere = 0xC0000201;
constexpr uint32_t kThere = 0xC0000202;
constexpr uint32_t kInitMask =
    verbs::kAttrState | verbs::kAttrPkeyIndex | verbs::kAttrPort | verbs::kAttrAccessFlags;
constexpr uint32_t kRtrMask = verbs::kAttrState | verbs::kAttrAv | verbs::kAttrPathMtu |
                              verbs::kAttrDestQpn | verbs::kAttrRqPsn |
                              verbs::kAttrMaxDestRdAtomic | verbs::kAttrMinRnrTimer;

session::Device At(uint32_t v4) {
  session::Device device = SessionHost::MakeDevice();
  device.gids = {wire::Gid::FromV4(v4)};
  return device;
}

session::Options Offering(bool channels = true, bool discovery = true) {
  session::Options options;
  options.gateways.channels = channels;
  options.gateways.discovery = discovery;
  options.gateways.window = 65536;
  return options;
}

struct Program {
  explicit Program(SessionHost& host) : client(host) {
    EXPECT_TRUE(client.Hello());
    const uint32_t context = client.OpenContext();
    const uint32_t cq = client.CreateCq(context).handle;
    qp = client.CreateQp(client.AllocPd(context), cq);
    rocegw_qp_attr attr{};
    attr.qp_state = static_cast<uint32_t>(QpState::kInit);
    attr.port_num = 1;
    EXPECT_EQ(client.Modify(qp.handle, kInitMask, attr), 0);
  }
  static rocegw_modify_qp ToRtr(uint32_t handle, uint32_t peer, uint32_t qpn) {
    auto modify = TestClient::Request<rocegw_modify_qp>(ROCEGW_MSG_MODIFY_QP);
    modify.qp = handle;
    modify.attr_mask = kRtrMask;
    modify.attr.qp_state = static_cast<uint32_t>(QpState::kRtr);
    modify.attr.path_mtu = 3;
    modify.attr.dest_qpn = qpn;
    modify.attr.av.dgid[10] = modify.attr.av.dgid[11] = 0xFF;
    for (int i = 0; i < 4; ++i)
      modify.attr.av.dgid[12 + i] = static_cast<uint8_t>(peer >> (24 - 8 * i));
    return modify;
  }
  bool Ask(uint32_t peer, uint32_t qpn) { return client.Send(ToRtr(qp.handle, peer, qpn)); }
  // Returns the errno of the answer; -1: none yet.
  int Answer() {
    const auto message = client.Receive();
    return message ? message->header().error : -1;
  }
  int Connect(uint32_t peer, uint32_t qpn) {
    client.Call<rocegw_object_reply>(ToRtr(qp.handle, peer, qpn));
    return client.error();
  }
  rocegw_ece_reply Ece(uint32_t vendor, uint32_t options) {
    auto set = TestClient::Request<rocegw_set_ece>(ROCEGW_MSG_SET_ECE);
    set.qp = qp.handle;
    set.vendor_id = vendor;
    set.options = options;
    return client.Call<rocegw_ece_reply>(set);
  }
  rocegw_ece_reply Ece() {
    auto query = TestClient::Request<rocegw_object_request>(ROCEGW_MSG_QUERY_ECE);
    query.handle = qp.handle;
    return client.Call<rocegw_ece_reply>(query);
  }

  TestClient client;
  rocegw_qp_reply qp{};
};

class GatewayPeer : public ::testing::Test {
 protected:
  void Carry(SessionHost& a, SessionHost& b) {
    for (bool moved = true; moved;) {
      a.Settle();
      b.Settle();
      moved = CarryOne(a, b);
      moved = CarryOne(b, a) || moved;
    }
  }
  static bool CarryOne(SessionHost& from, SessionHost& to) {
    auto& mads = from.workers[0]->mads;
    if (mads.empty()) return false;
    for (const worker::SendMad& mad : mads) {
      worker::MadReceived received;
      received.meta.source = mad.path.source;
      received.meta.destination = mad.path.destination;
      received.source_qpn = kGsiQpn;
      received.mad = mad.mad;
      to.workers[0]->Raise({0, received});
    }
    mads.clear();
    return true;
  }
  // Runs until the program is answered; discovery gives up by itself.
  int WaitFor(SessionHost& host, Program& program) {
    int error = -1;
    while ((error = program.Answer()) < 0) {
      host.loop.RunOnce(Milliseconds(5));
      host.Settle();
    }
    return error;
  }
  static std::optional<verbs::ChannelTarget> TargetOf(const SessionHost& host, uint32_t qpn) {
    for (const auto& worker : host.workers) {
      for (const auto& [id, session] : worker->sessions) {
        const auto found = session.qps.find(qpn);
        if (found != session.qps.end()) return found->second.channel;
      }
    }
    return std::nullopt;
  }
  static session::QpRow RowOf(SessionHost& host, uint32_t qpn) {
    session::QpRow row;
    host.server->Snapshot({.qps = true}, [&](const session::StateSnapshot& snapshot) {
      for (const session::QpRow& qp : snapshot.qps) {
        if (qp.qpn == qpn) row = qp;
      }
    });
    host.Settle();
    return row;
  }
  void TearDown() override {
    EXPECT_EQ(here.BrokenRules(), std::vector<std::string>());
    EXPECT_EQ(there.BrokenRules(), std::vector<std::string>());
  }

  SessionHost here{2, Offering(), 4096, {At(kHere)}};
  SessionHost there{2, Offering(), 4096, {At(kThere)}};
};

TEST_F(GatewayPeer, ToRtr_WaitsForTheAnswerAndTellsTheWorkerWhereTheChannelLeads) {
  Program program(here);
  Program peer(there);
  ASSERT_TRUE(program.Ask(kThere, peer.qp.qpn));
  here.Settle();
  EXPECT_EQ(program.Answer(), -1) << "it waits";
  Carry(here, there);
  EXPECT_EQ(program.Answer(), 0);
  const auto target = TargetOf(here, program.qp.qpn);
  ASSERT_TRUE(target.has_value());
  const uint32_t owner = (peer.qp.qpn >> 18) % 2;
  EXPECT_EQ(target->peer, wire::Gid::FromV4(kThere));
  EXPECT_EQ(target->peer_worker, owner);
  EXPECT_EQ(target->acceptor, there.workers[owner]->channels.acceptor);
  EXPECT_EQ(target->instance, there.workers[owner]->channels.instance);
  EXPECT_EQ(target->window, 65536u);
  EXPECT_EQ(RowOf(here, program.qp.qpn).transport, "channel");
}

TEST_F(GatewayPeer, ChannelThatIsDeclined_IsToldWithItsReason) {
  Program program(here);
  Program peer(there);
  ASSERT_TRUE(program.Ask(kThere, peer.qp.qpn));
  Carry(here, there);
  ASSERT_EQ(program.Answer(), 0);
  EXPECT_NE(RowOf(here, program.qp.qpn).channel, 0u);
  for (const auto& worker : here.workers) {
    for (auto& [id, session] : worker->sessions)
      for (auto& [qpn, qp] : session.qps) qp.declined = wire::ChannelReason::kPathFailed;
  }
  const session::QpRow row = RowOf(here, program.qp.qpn);
  EXPECT_EQ(row.transport, "native");
  EXPECT_EQ(row.channel, 0u);
  EXPECT_EQ(row.transport_reason, "the peer gateway did not answer when a channel was opened");
}

TEST_F(GatewayPeer, Channels_AreShownByWorker) {
  channel::ChannelSnapshot open;
  open.key = {.source = wire::Gid::FromV4(kHere), .peer = wire::Gid::FromV4(kThere)};
  open.state = channel::ChannelState::kOpen;
  open.number = Qpn{1u << 18 | 5};
  open.peer_number = Qpn{77};
  open.features =
      wire::kOptionChannel | wire::kOptionSelectiveAck | wire::kOptionCcRtt | wire::kOptionCcStatic;
  open.congestion = flow::CcKind::kSwift;
  open.rtt = Microseconds(50);
  channel::ChannelSnapshot opening;
  opening.number = Qpn{6};
  here.workers[0]->channel_rows = {opening};
  here.workers[1]->channel_rows = {open};
  std::vector<session::ChannelRow> rows;
  here.server->Snapshot({.channels = true},
                        [&](const session::StateSnapshot& snapshot) { rows = snapshot.channels; });
  here.Settle();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].state, "opening");
  EXPECT_EQ(rows[0].worker, 0u);
  EXPECT_TRUE(rows[0].agreed.empty());
  EXPECT_EQ(rows[1].state, "open");
  EXPECT_EQ(rows[1].worker, 1u);
  EXPECT_EQ(rows[1].peer_number, 77u);
  EXPECT_EQ(rows[1].agreed, (std::vector<std::string>{"channel", "selective acknowledgement",
                                                      "RTT-based control"}));
  EXPECT_EQ(rows[1].congestion, "swift");
  EXPECT_EQ(rows[1].rtt_ns, 50000u);
  // Also with a draining gateway.
  rows.clear();
  here.server->OrderDrainLocally(true);
  here.server->Snapshot({.channels = true},
                        [&](const session::StateSnapshot& snapshot) { rows = snapshot.channels; });
  here.Settle();
  EXPECT_EQ(rows.size(), 2u);
}

// By the fleet's names, for all addresses and workers.
TEST_F(GatewayPeer, TrafficOfPeers_IsShownByTheirNames) {
  here.server->SetPeer("gateways/b", {wire::Gid::FromV4(kThere), wire::Gid::FromV4(kThere + 1)});
  const auto traffic = [](uint32_t address, uint64_t bytes) {
    channel::PeerTraffic peer;
    peer.peer = wire::Gid::FromV4(address);
    peer.arrived_bytes = bytes;
    peer.resent_packets = 1;
    peer.channels = peer.channels_rtt = 1;
    peer.rtts = Microseconds(static_cast<int64_t>(bytes));
    return peer;
  };
  here.workers[0]->peer_rows = {traffic(kThere, 10), traffic(kThere + 1, 20)};
  here.workers[1]->peer_rows = {traffic(kThere, 30), traffic(kThere + 7, 400)};
  std::map<std::string, session::PeerRow> rows;
  uint64_t members = 0;
  here.server->Snapshot({.peers = true}, [&](const session::StateSnapshot& snapshot) {
    rows = snapshot.peers;
    members = snapshot.discovery.members_not_asked;
  });
  here.Settle();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows.at("b").arrived_bytes, 60u);
  EXPECT_EQ(rows.at("b").resent_packets, 3u);
  EXPECT_EQ(rows.at("b").channels, 3u);
  EXPECT_DOUBLE_EQ(rows.at("b").rtt_seconds(), 2e-5);
  EXPECT_EQ(rows.at("other").arrived_bytes, 400u);
  EXPECT_EQ(members, 2u);
}

// A member of the fleet is asked for longer; if it is no gateway, connections go on natively.
TEST_F(GatewayPeer, MemberThatDoesNotAnswer_IsWaitedForAndThenNative) {
  here.server->SetPeer("gateways/b", {wire::Gid::FromV4(kThere)});
  Program program(here);
  const TimePoint before = ControlLoop::Now();
  ASSERT_TRUE(program.Ask(kThere, 77));
  EXPECT_EQ(WaitFor(here, program), 0);
  EXPECT_GE((ControlLoop::Now() - before).ns, Milliseconds(100).ns);
  EXPECT_FALSE(TargetOf(here, program.qp.qpn).has_value());
}

TEST_F(GatewayPeer, PeerThatChanged_IsAskedAgain) {
  Program program(here);
  Program peer(there);
  ASSERT_TRUE(program.Ask(kThere, peer.qp.qpn));
  Carry(here, there);
  ASSERT_EQ(program.Answer(), 0);
  here.workers[0]->Raise({0, worker::PeerChanged{wire::Gid::FromV4(kThere)}});
  here.Settle();
  Program again(here);
  ASSERT_TRUE(again.Ask(kThere, peer.qp.qpn));
  here.Settle();
  EXPECT_EQ(again.Answer(), -1) << "it waits for the answer";
  Carry(here, there);
  EXPECT_EQ(again.Answer(), 0);
}

TEST_F(GatewayPeer, KnownPeer_NeedsNoQuestion) {
  Program first(here);
  Program second(here);
  Program peer(there);
  first.Ask(kThere, peer.qp.qpn);
  Carry(here, there);
  ASSERT_EQ(first.Answer(), 0);
  EXPECT_EQ(second.Connect(kThere, peer.qp.qpn), 0);
  EXPECT_TRUE(here.workers[0]->mads.empty());
  EXPECT_TRUE(TargetOf(here, second.qp.qpn).has_value());
}

TEST_F(GatewayPeer, SilentPeer_IsConnectedNativelyAfterAMoment) {
  Program program(here);
  ASSERT_TRUE(program.Ask(0xC0000299, 0x1234));
  EXPECT_EQ(WaitFor(here, program), 0);
  EXPECT_FALSE(TargetOf(here, program.qp.qpn).has_value());
  const session::QpRow row = RowOf(here, program.qp.qpn);
  EXPECT_EQ(row.transport, "native");
  EXPECT_EQ(row.transport_reason, "the peer does not answer as a gateway");
}

TEST_F(GatewayPeer, OtherProgramsGoOnWhileOneWaits) {
  Program waits(here);
  Program other(here);
  ASSERT_TRUE(waits.Ask(0xC0000299, 0x1234));
  here.Settle();
  EXPECT_NE(other.client.OpenContext(), 0u);
  EXPECT_EQ(other.Connect(kHere, waits.qp.qpn), 0) << "an address of its own needs no question";
  EXPECT_EQ(waits.Answer(), -1);
  EXPECT_EQ(WaitFor(here, waits), 0);
}

TEST_F(GatewayPeer, RequestsBehindTheWaitingOne_AreAnsweredInOrder) {
  Program program(here);
  ASSERT_TRUE(program.Ask(0xC0000299, 0x1234));
  auto query = TestClient::Request<rocegw_object_request>(ROCEGW_MSG_QUERY_QP);
  query.handle = program.qp.handle;
  ASSERT_TRUE(program.client.Send(query));
  EXPECT_EQ(WaitFor(here, program), 0);
  here.Settle();
  const auto answer = program.client.Receive();
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->header().type, static_cast<uint32_t>(ROCEGW_MSG_QUERY_QP));
  rocegw_query_qp_reply reply{};
  std::memcpy(&reply, answer->bytes.data(), std::min(answer->bytes.size(), sizeof reply));
  EXPECT_EQ(reply.attr.qp_state, static_cast<uint32_t>(QpState::kRtr));
}

TEST_F(GatewayPeer, ProcessThatDiesWhileItWaits_LeavesNothing) {
  auto program = std::make_unique<Program>(here);
  ASSERT_TRUE(program->Ask(0xC0000299, 0x1234));
  here.Settle();
  program.reset();
  while (here.server->session_count() != 0) {
    here.loop.RunOnce(Milliseconds(5));
    here.Settle();
  }
  EXPECT_EQ(here.LinkedObjects(), 0u);
}

TEST_F(GatewayPeer, ChannelsNotEnabled_AskNobodyAndTakeNoNumbers) {
  SessionHost plain(2, Offering(false), 4096, {At(kHere)});
  EXPECT_EQ(plain.server->services().qpns.in_use(), 0u);
  EXPECT_EQ(plain.workers[0]->channels.acceptor, kInvalidQpn);
  Program program(plain);
  EXPECT_EQ(program.Connect(kThere, 0x1234), 0);
  EXPECT_TRUE(plain.workers[0]->mads.empty());
  EXPECT_EQ(RowOf(plain, program.qp.qpn).transport_reason, "channels are not enabled here");
  // But its request says that it is a gateway.
  Program asks(here);
  ASSERT_TRUE(asks.Ask(kHere + 0x10, 0x1234));
  EXPECT_EQ(WaitFor(here, asks), 0);
}

TEST_F(GatewayPeer, PeerWithoutChannels_GetsNativeRcAndTheReason) {
  SessionHost old(2, Offering(false), 4096, {At(kThere)});
  Program program(here);
  ASSERT_TRUE(program.Ask(kThere, 0x1234));
  Carry(here, old);
  EXPECT_EQ(program.Answer(), 0);
  EXPECT_FALSE(TargetOf(here, program.qp.qpn).has_value());
  EXPECT_EQ(RowOf(here, program.qp.qpn).transport_reason, "the peer gateway has no channels");
}

TEST_F(GatewayPeer, Ece_OffersAndCommits) {
  Program program(here);
  Program peer(there);
  const rocegw_ece_reply offered = program.Ece();
  EXPECT_EQ(program.client.error(), 0);
  EXPECT_EQ(offered.vendor_id, session::kVendorId);
  EXPECT_EQ(offered.options & (wire::kOptionPresent | wire::kOptionChannel),
            uint32_t{wire::kOptionPresent | wire::kOptionChannel});
  program.Ece(0x15B3, 1);
  EXPECT_EQ(program.client.error(), EINVAL) << "another vendor's";
  const rocegw_ece_reply taken = program.Ece(session::kVendorId, 0xF0000001);
  EXPECT_EQ(program.client.error(), 0);
  EXPECT_EQ(taken.options, uint32_t{wire::kOptionPresent}) << "what is not offered is not accepted";
  EXPECT_EQ(program.Ece().options, uint32_t{wire::kOptionPresent});
  EXPECT_EQ(program.Connect(kThere, peer.qp.qpn), 0);
  EXPECT_EQ(RowOf(here, program.qp.qpn).transport_reason, "the program wants no channel");
}

// A queue pair's requested order reaches its worker; its program gets the possible one.
TEST_F(GatewayPeer, OrderingOnRequest_ReachesTheWorkerAndTheProgram) {
  Program program(here);
  Program peer(there);
  const auto path = [&] {
    auto query = TestClient::Request<rocegw_object_request>(ROCEGW_MSG_QUERY_QP);
    query.handle = program.qp.handle;
    return program.client.Call<rocegw_query_qp_reply>(query).path;
  };
  EXPECT_EQ(path(), uint32_t{ROCEGW_PATH_NONE});
  ASSERT_TRUE(program.Ask(kThere, peer.qp.qpn));
  Carry(here, there);
  ASSERT_EQ(program.Answer(), 0);
  EXPECT_NE(TargetOf(here, program.qp.qpn)->features & wire::kOptionOrdering, 0u);
  EXPECT_EQ(path(), uint32_t{ROCEGW_PATH_ANY_ORDER});

  auto create = TestClient::Request<rocegw_create_qp>(ROCEGW_MSG_CREATE_QP);
  const uint32_t context = program.client.OpenContext();
  create.pd = program.client.AllocPd(context);
  create.send_cq = create.recv_cq = program.client.CreateCq(context).handle;
  create.type = ROCEGW_QPT_RC;
  create.max_send_wr = create.max_recv_wr = 4;
  create.max_send_sge = create.max_recv_sge = 1;
  create.service_mode = ROCEGW_SERVICE_BY_INITIATOR;
  create.any_completion_order = 1;
  const auto made = program.client.Call<rocegw_qp_reply>(create);
  ASSERT_EQ(program.client.error(), 0);
  bool found = false;
  for (const auto& worker : here.workers) {
    for (const auto& [id, session] : worker->sessions) {
      const auto qp = session.qps.find(made.qpn);
      if (qp == session.qps.end()) continue;
      found = true;
      EXPECT_EQ(qp->second.config.service_mode, verbs::ServiceMode::kByInitiator);
      EXPECT_TRUE(qp->second.config.any_completion_order);
    }
  }
  EXPECT_TRUE(found);

  create.service_mode = ROCEGW_SERVICE_UNORDERED + 1;
  program.client.Call<rocegw_qp_reply>(create);
  EXPECT_EQ(program.client.error(), EINVAL);
  create.service_mode = ROCEGW_SERVICE_UNORDERED;
  create.type = ROCEGW_QPT_UD;
  program.client.Call<rocegw_qp_reply>(create);
  EXPECT_EQ(program.client.error(), EINVAL);
}

TEST_F(GatewayPeer, PeersOfEndpoints_AreLookedUpAndToldToAllWorkers) {
  Program program(here);
  const uint32_t context = program.client.OpenContext();
  auto create = TestClient::Request<rocegw_create_peer>(ROCEGW_MSG_CREATE_PEER);
  create.pd = program.client.AllocPd(context);
  create.qpn = 1u << 18 | 77;
  create.key = 0x4711;
  create.av = Program::ToRtr(0, kThere, 0).attr.av;
  ASSERT_TRUE(program.client.Send(create));
  here.Settle();
  EXPECT_EQ(program.Answer(), -1) << "it waits";
  Carry(here, there);
  const auto message = program.client.Receive();
  ASSERT_TRUE(message.has_value());
  ASSERT_EQ(message->header().error, 0);
  size_t told = 0;
  for (const auto& worker : here.workers) {
    for (const auto& [id, session] : worker->sessions) {
      for (const auto& [handle, peer] : session.peers) {
        ++told;
        EXPECT_EQ(peer.endpoint, Qpn{create.qpn});
        EXPECT_EQ(peer.key, 0x4711u);
        EXPECT_EQ(peer.path.destination, wire::Gid::FromV4(kThere));
        EXPECT_EQ(peer.target.peer_worker, 1u);
      }
    }
  }
  EXPECT_EQ(told, here.workers.size());
  // A second one needs no question; there is no channel to oneself; a number may be invalid.
  const tenant::QuotaNode& quota = here.server->services().pools.gateway();
  const uint64_t heap = quota.used(session::Resource::kHeapBytes);
  const auto second = program.client.Call<rocegw_object_reply>(create);
  EXPECT_EQ(program.client.error(), 0);
  EXPECT_EQ(quota.used(session::Resource::kHeapBytes),
            heap + session::HeapOfPeer(here.workers.size()));
  auto own = create;
  own.av = Program::ToRtr(0, kHere, 0).attr.av;
  program.client.Call<rocegw_object_reply>(own);
  EXPECT_EQ(program.client.error(), EHOSTUNREACH);
  auto wrong = create;
  wrong.qpn = 1;
  program.client.Call<rocegw_object_reply>(wrong);
  EXPECT_EQ(program.client.error(), EINVAL);
  auto destroy = TestClient::Request<rocegw_object_request>(ROCEGW_MSG_DESTROY_PEER);
  destroy.handle = second.handle;
  program.client.Call<rocegw_object_reply>(destroy);
  EXPECT_EQ(program.client.error(), 0);
  EXPECT_EQ(quota.used(session::Resource::kHeapBytes), heap);
  program.client.Call<rocegw_object_reply>(destroy);
  EXPECT_EQ(program.client.error(), EINVAL);
  for (const auto& worker : here.workers)
    for (const auto& [id, session] : worker->sessions) EXPECT_EQ(session.peers.size(), 1u);
}

// An endpoint can reach its peer only through a channel.
TEST_F(GatewayPeer, PeersOfEndpoints_SilentAtFirst_AreAskedAgain) {
  Program program(here);
  auto create = TestClient::Request<rocegw_create_peer>(ROCEGW_MSG_CREATE_PEER);
  create.pd = program.client.AllocPd(program.client.OpenContext());
  create.qpn = 1u << 18 | 77;
  create.av = Program::ToRtr(0, kThere, 0).attr.av;
  ASSERT_TRUE(program.client.Send(create));
  const auto& mads = here.workers[0]->mads;
  while (mads.size() < 7) {
    here.loop.RunOnce(Milliseconds(5));
    here.Settle();
  }
  EXPECT_EQ(program.Answer(), -1) << "silence, more than once, and still it waits";
  EXPECT_GE(here.server->cm().engine().discovery().counters().silent, 2u);
  Carry(here, there);
  EXPECT_EQ(WaitFor(here, program), 0);
}

TEST_F(GatewayPeer, PeersOfEndpoints_ThatKeepSilent_AreNotReached) {
  Program program(here);
  auto create = TestClient::Request<rocegw_create_peer>(ROCEGW_MSG_CREATE_PEER);
  create.pd = program.client.AllocPd(program.client.OpenContext());
  create.qpn = 1u << 18 | 77;
  create.av = Program::ToRtr(0, 0xC0000299, 0).attr.av;
  ASSERT_TRUE(program.client.Send(create));
  EXPECT_EQ(WaitFor(here, program), EHOSTUNREACH);
}

TEST_F(GatewayPeer, Groups_LeadToOneWorker_AndSoDoTheirMembers) {
  Program program(here);
  const uint32_t context = program.client.OpenContext();
  auto create = TestClient::Request<rocegw_create_group>(ROCEGW_MSG_CREATE_GROUP);
  create.pd = program.client.AllocPd(context);
  create.key = 0x4711;
  create.dispatch = ROCEGW_DISPATCH_DEPTH;
  const auto made = program.client.Call<rocegw_group_reply>(create);
  ASSERT_EQ(program.client.error(), 0);
  auto qp = TestClient::Request<rocegw_create_qp>(ROCEGW_MSG_CREATE_QP);
  qp.pd = create.pd;
  qp.send_cq = qp.recv_cq = program.client.CreateCq(context).handle;
  qp.type = ROCEGW_QPT_ENDPOINT;
  qp.service_mode = ROCEGW_SERVICE_BY_INITIATOR;
  qp.max_send_wr = qp.max_recv_wr = 4;
  qp.group = made.handle;
  std::vector<uint32_t> members;
  for (int i = 0; i < 3; ++i) {
    members.push_back(program.client.Call<rocegw_qp_reply>(qp).handle);
    ASSERT_EQ(program.client.error(), 0);
  }
  size_t found = 0;
  for (const auto& worker : here.workers) {
    for (const auto& [id, session] : worker->sessions) {
      const auto group = session.groups.find(made.number);
      for (const auto& [number, member] : session.qps) {
        if (member.config.group != Qpn{made.number}) continue;
        ++found;
        EXPECT_EQ(member.config.group_key, 0x4711u);
        ASSERT_NE(group, session.groups.end()) << "members are where the group is";
        EXPECT_EQ(group->second.dispatch, verbs::Dispatch::kDepth);
      }
    }
  }
  EXPECT_EQ(found, 3u);

  auto destroy = TestClient::Request<rocegw_object_request>(ROCEGW_MSG_DESTROY_GROUP);
  destroy.handle = made.handle;
  program.client.Call<rocegw_object_reply>(destroy);
  EXPECT_EQ(program.client.error(), EBUSY);
  for (const uint32_t member : members) {
    auto end = TestClient::Request<rocegw_object_request>(ROCEGW_MSG_DESTROY_QP);
    end.handle = member;
    program.client.Call<rocegw_object_reply>(end);
    EXPECT_EQ(program.client.error(), 0);
  }
  program.client.Call<rocegw_object_reply>(destroy);
  EXPECT_EQ(program.client.error(), 0);
  program.client.Call<rocegw_object_reply>(destroy);
  EXPECT_EQ(program.client.error(), EINVAL);
}

TEST_F(GatewayPeer, Groups_WhatCannotBe_IsRefused_AndTheEndTakesThemAlong) {
  Program program(here);
  const uint32_t context = program.client.OpenContext();
  auto create = TestClient::Request<rocegw_create_group>(ROCEGW_MSG_CREATE_GROUP);
  create.pd = program.client.AllocPd(context);
  create.dispatch = ROCEGW_DISPATCH_DEPTH + 1;
  program.client.Call<rocegw_group_reply>(create);
  EXPECT_EQ(program.client.error(), EINVAL);
  create.dispatch = ROCEGW_DISPATCH_HASH;
  here.workers[0]->fail_next = here.workers[1]->fail_next = ENOMEM;
  program.client.Call<rocegw_group_reply>(create);
  EXPECT_EQ(program.client.error(), ENOMEM);
  here.workers[0]->fail_next = here.workers[1]->fail_next = 0;
  const auto made = program.client.Call<rocegw_group_reply>(create);
  ASSERT_EQ(program.client.error(), 0);

  auto qp = TestClient::Request<rocegw_create_qp>(ROCEGW_MSG_CREATE_QP);
  qp.pd = create.pd;
  qp.send_cq = qp.recv_cq = program.client.CreateCq(context).handle;
  qp.type = ROCEGW_QPT_ENDPOINT;
  qp.service_mode = ROCEGW_SERVICE_BY_INITIATOR;
  qp.max_send_wr = qp.max_recv_wr = 4;
  qp.group = made.handle + 1;
  program.client.Call<rocegw_qp_reply>(qp);
  EXPECT_EQ(program.client.error(), EINVAL) << "no such group";
  qp.group = made.handle;
  qp.type = ROCEGW_QPT_RC;
  program.client.Call<rocegw_qp_reply>(qp);
  EXPECT_EQ(program.client.error(), EINVAL) << "no endpoint";
  qp.type = ROCEGW_QPT_ENDPOINT;
  qp.pd = program.client.AllocPd(context);
  program.client.Call<rocegw_qp_reply>(qp);
  EXPECT_EQ(program.client.error(), EINVAL) << "another protection domain";
  qp.pd = create.pd;
  program.client.Call<rocegw_qp_reply>(qp);
  EXPECT_EQ(program.client.error(), 0);

  auto close = TestClient::Request<rocegw_object_request>(ROCEGW_MSG_CLOSE_CONTEXT);
  close.handle = context;
  program.client.Call<rocegw_object_reply>(close);
  EXPECT_EQ(program.client.error(), 0);
  for (const auto& worker : here.workers)
    for (const auto& [id, session] : worker->sessions) EXPECT_TRUE(session.groups.empty());
}

}  // namespace
}  // namespace rocegw::testing
