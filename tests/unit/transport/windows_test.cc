// SPDX-License-Identifier: Apache-2.0
// Memory windows at queue pairs: requests that bind and invalidate, in request order, and SENDs
// that invalidate, in both directions, as plain RoCEv2 and on a channel.
#include <gtest/gtest.h>

#include "gateway/verbs/memory_window.h"
#include "tests/support/qp/frame_peer.h"

namespace rocegw::testing::windows {
namespace {

using metrics::DropReason;
using verbs::MemoryWindow;
using verbs::QpState;
using wire::Opcode;

constexpr uint32_t kPsn = ScriptedPeer::kHostPsn;
constexpr uint32_t kPeerPsn = ScriptedPeer::kPeerPsn;
constexpr uint64_t kSource = 0x1000;
constexpr uint64_t kWindow = 0x4000;  // start of the window
constexpr uint32_t kWindowLength = 64;
constexpr MemoryKey kFirst{0x77777700};
constexpr MemoryKey kSecond{0x77777701};
constexpr MemoryKey kRegion{0x12340000};

enum Status : uint8_t {
  kSuccess = 0,
  kLocalQpOperation = 2,
  kFlush = 5,
  kMwBind = 6,
  kLocalAccess = 8,
  kRemoteAccess = 10,
};
enum WcOpcode : uint8_t { kSend = 0, kBind = 5, kLocalInvalidate = 6, kReceive = 128 };

// A host's window of type 2 with a region that it may be bound to.
struct Target {
  explicit Target(QpHost& to) : host(to), window(verbs::MwType::kType2, SessionId{1}, 1, kFirst) {
    verbs::RegionConfig region;
    region.key = kRegion;
    region.session = SessionId{1};
    region.pd = 1;
    region.access = verbs::kAccessLocalWrite;
    region.iova = region.address = QpHost::kBase;
    region.length = host.memory().size();
    region.windows = &bound;
    EXPECT_TRUE(host.regions().Link(region));
    EXPECT_TRUE(host.regions().LinkWindow(MemoryWindow::NameOf(kFirst), window));
  }
  void PostBind(MemoryKey before = kFirst, MemoryKey key = kSecond, uint16_t flags = kSignaled) {
    rocegw_send_wqe wqe{};
    wqe.wr_id = 70;
    wqe.opcode = ROCEGW_WR_BIND_MW;
    wqe.flags = flags;
    wqe.imm_or_rkey = key.value;
    wqe.u.bind = {host.Address(kWindow),
                  kWindowLength,
                  kRegion.value,
                  before.value,
                  verbs::kAccessRemoteWrite,
                  0};
    host.PostSend(wqe, {});
  }
  void PostInvalidate(MemoryKey key, uint8_t opcode = ROCEGW_WR_LOCAL_INV) {
    rocegw_send_wqe wqe{};
    wqe.wr_id = 71;
    wqe.opcode = opcode;
    wqe.flags = kSignaled;
    wqe.imm_or_rkey = key.value;
    host.PostSend(wqe, {});
  }
  void PostSendInvalidate(uint32_t length, MemoryKey key = kSecond) {
    rocegw_send_wqe wqe{};
    wqe.wr_id = 72;
    wqe.opcode = ROCEGW_WR_SEND_WITH_INV;
    wqe.flags = kSignaled;
    wqe.imm_or_rkey = key.value;
    host.PostSend(wqe, {{kSource, length}});
  }
  bool bound_now() const {
    return host.regions()
        .FindRemote(host.context().user(), kSecond, 0, host.Address(kWindow), 1)
        .has_value();
  }

  static constexpr uint16_t kSignaled = ROCEGW_WQE_SIGNALED;
  QpHost& host;
  verbs::BoundWindows bound;
  MemoryWindow window;
};

struct NativeEnd {
  ScriptedPeer peer;
  Target target{peer.host()};

  // Delivers the peer's WRITE to the window.
  DropReason Write(uint32_t psn, MemoryKey key = kSecond) {
    wire::Headers write = peer.Write(Opcode::kRcWriteOnly, psn, kWindow, 8, true);
    write.reth.rkey = key.value;
    return peer.Deliver(write, ScriptedPeer::Bytes(8, 9));
  }
  void Bind() {
    target.PostBind();
    EXPECT_TRUE(peer.Out().empty()) << "it stays here";
    const rocegw_cqe cqe = peer.PollOne();
    EXPECT_EQ(cqe.status, kSuccess);
    EXPECT_EQ(cqe.opcode, kBind);
    EXPECT_EQ(cqe.wr_id, 70u);
  }
};

TEST(WindowRequests, Bound_PeerWritesByItsKey_InvalidatedNoMore) {
  NativeEnd end;
  EXPECT_EQ(end.target.host.context().state(), QpState::kRts);
  end.Bind();
  EXPECT_EQ(end.Write(kPeerPsn), DropReason::kNone);
  EXPECT_EQ(end.peer.OutOne().syndrome(), wire::kSyndromeAck);
  EXPECT_EQ(end.peer.host().memory()[kWindow], 9);
  end.target.PostInvalidate(kSecond);
  EXPECT_TRUE(end.peer.Out().empty());
  const rocegw_cqe cqe = end.peer.PollOne();
  EXPECT_EQ(cqe.status, kSuccess);
  EXPECT_EQ(cqe.opcode, kLocalInvalidate);
  EXPECT_EQ(end.Write(kPeerPsn + 1), DropReason::k_access_error);
  EXPECT_EQ(end.peer.OutOne().syndrome(), wire::SyndromeOf(wire::NakCode::kRemoteAccess));
}

TEST(WindowRequests, Invalidation_CompletesAfterWhatThePeerWroteBefore) {
  NativeEnd end;
  end.Bind();
  EXPECT_EQ(end.Write(kPeerPsn), DropReason::kNone);
  end.target.PostInvalidate(kSecond);
  end.peer.OutWithoutMemory();
  EXPECT_TRUE(end.peer.Poll().empty()) << "the WRITE is still on its way into memory";
  end.peer.PostSend(kSource, 4);
  const auto out = end.peer.Out();
  const auto is_send = [](const SentPacket& p) { return p.opcode() == Opcode::kRcSendOnly; };
  EXPECT_TRUE(std::any_of(out.begin(), out.end(), is_send)) << "what follows leaves";
  EXPECT_EQ(end.peer.PollOne().opcode, kLocalInvalidate);
  EXPECT_EQ(end.peer.host().memory()[kWindow], 9);
}

TEST(WindowRequests, WaitForWhatIsBefore_AndAskForItsAcknowledgement) {
  NativeEnd end;
  end.peer.PostSend(kSource, 4, 0);
  end.target.PostBind();
  end.peer.PostSend(kSource, 4);
  auto out = end.peer.Out();
  ASSERT_EQ(out.size(), 2u) << "the SEND, and again so that it is acknowledged";
  EXPECT_FALSE(out[0].headers.bth.ack_request);
  EXPECT_TRUE(out[1].headers.bth.ack_request);
  EXPECT_EQ(out[1].psn(), kPsn);
  EXPECT_TRUE(end.peer.Out().empty()) << "once";
  EXPECT_FALSE(end.target.bound_now());
  end.peer.Deliver(end.peer.Ack(kPsn));
  EXPECT_EQ(end.peer.OutOne().psn(), kPsn + 1);
  EXPECT_EQ(end.peer.PollOne().opcode, kBind);
  end.peer.Deliver(end.peer.Ack(kPsn + 1));
  EXPECT_EQ(end.peer.PollOne().opcode, kSend) << "answers are matched behind it";
}

TEST(WindowRequests, BehindARead_WaitForItsData) {
  NativeEnd end;
  end.peer.PostRead(kSource, 8);
  end.target.PostBind();
  EXPECT_EQ(end.peer.OutOne().opcode(), Opcode::kRcReadRequest);
  EXPECT_TRUE(end.peer.Poll().empty());
  end.peer.Deliver(end.peer.ReadResponse(Opcode::kRcReadResponseOnly, kPsn),
                   ScriptedPeer::Bytes(8));
  EXPECT_TRUE(end.peer.Out().empty());
  EXPECT_EQ(end.peer.Poll().size(), 2u);
  EXPECT_TRUE(end.target.bound_now());
}

TEST(WindowRequests, Repetition_BindsOnce) {
  NativeEnd end;
  end.target.PostBind();
  end.peer.PostSend(kSource, 600);
  EXPECT_EQ(end.peer.Out().size(), 3u);
  EXPECT_EQ(end.peer.PollOne().opcode, kBind);
  wire::Headers nak = end.peer.Ack(kPsn + 1, wire::SyndromeOf(wire::NakCode::kPsnSequence));
  end.peer.Deliver(nak);
  EXPECT_EQ(end.peer.Out().size(), 2u);
  end.peer.Deliver(end.peer.Ack(kPsn + 2));
  EXPECT_EQ(end.peer.PollOne().status, kSuccess);
}

TEST(WindowRequests, ThatMustNot_FailTheQueuePair) {
  {
    NativeEnd end;
    end.target.PostBind(kSecond);
    end.peer.PostSend(kSource, 4);
    EXPECT_TRUE(end.peer.Out().empty());
    const auto cqes = end.peer.Poll();
    ASSERT_EQ(cqes.size(), 2u);
    EXPECT_EQ(cqes[0].status, kMwBind);
    EXPECT_EQ(cqes[1].status, kFlush);
  }
  {
    NativeEnd end;
    end.target.PostInvalidate(kSecond);
    end.peer.Out();
    EXPECT_EQ(end.peer.PollOne().status, kLocalQpOperation);
    EXPECT_EQ(end.target.host.context().state(), QpState::kError);
  }
}

TEST(SendInvalidate, Leaves_WithTheKeyInItsLastPacket) {
  NativeEnd end;
  end.target.PostSendInvalidate(300);
  end.target.PostSendInvalidate(4);
  const auto out = end.peer.Out();
  ASSERT_EQ(out.size(), 3u);
  EXPECT_EQ(out[0].opcode(), Opcode::kRcSendFirst);
  EXPECT_EQ(out[1].opcode(), Opcode::kRcSendLastInvalidate);
  EXPECT_EQ(out[1].headers.invalidate_rkey, kSecond.value);
  EXPECT_EQ(out[2].opcode(), Opcode::kRcSendOnlyInvalidate);
  end.peer.Deliver(end.peer.Ack(kPsn + 2));
  EXPECT_EQ(end.peer.Poll().size(), 2u);
}

TEST(SendInvalidate, Received_TakesTheKeyBackAndSaysSo) {
  NativeEnd end;
  end.Bind();
  end.peer.PostReceive(0x8000, 1000);
  const auto data = ScriptedPeer::Bytes(300);
  end.peer.Deliver(end.peer.To(Opcode::kRcSendFirst, kPeerPsn), {data.begin(), data.begin() + 256});
  EXPECT_TRUE(end.target.bound_now()) << "until the message is whole";
  wire::Headers last = end.peer.To(Opcode::kRcSendLastInvalidate, kPeerPsn + 1, true);
  last.invalidate_rkey = kSecond.value;
  end.peer.Deliver(last, {data.begin() + 256, data.end()});
  EXPECT_EQ(end.peer.OutOne().syndrome(), wire::kSyndromeAck);
  const rocegw_cqe cqe = end.peer.PollOne();
  EXPECT_EQ(cqe.flags, ROCEGW_CQE_RECEIVE | ROCEGW_CQE_WITH_INV);
  EXPECT_EQ(cqe.imm_or_rkey, kSecond.value);
  EXPECT_EQ(cqe.byte_length, 300u);
  EXPECT_FALSE(end.target.bound_now());
  // A copy of the packet is a duplicate and invalidates nothing.
  EXPECT_EQ(end.peer.Deliver(last, {data.begin() + 256, data.end()}),
            DropReason::k_duplicate_request);
  EXPECT_EQ(end.target.host.context().state(), QpState::kRts);
}

// Fault of class J (IBTA 9.9.6.3): an invalidation of an unbound window.
TEST(SendInvalidate, OfWhatIsNotBound_FailsHereWithoutANak) {
  NativeEnd end;
  end.peer.PostReceive(0x8000, 1000);
  wire::Headers send = end.peer.To(Opcode::kRcSendOnlyInvalidate, kPeerPsn, true);
  send.invalidate_rkey = end.peer.host().key();
  EXPECT_EQ(end.peer.Deliver(send, ScriptedPeer::Bytes(8)), DropReason::k_access_error);
  EXPECT_TRUE(end.peer.Out().empty());
  EXPECT_EQ(end.peer.PollOne().status, kLocalAccess);
  EXPECT_EQ(end.target.host.context().state(), QpState::kError);
}

struct ChannelEnd {
  ChannelEnd() { peer.host().context().peer_invalidates = true; }
  FramePeer peer;
  Target target{peer.host()};
  DropReason Write(uint32_t message) {
    wire::ChannelFrame write = peer.Write(message, kWindow, 8);
    write.rkey = kSecond.value;
    return peer.Deliver(write, ScriptedPeer::Bytes(8, 9));
  }
  DropReason SendInvalidate(uint32_t message, MemoryKey key) {
    wire::ChannelFrame send = peer.Send(message, 0, 8);
    send.flags |= wire::kFrameInvalidate;
    send.invalidate_rkey = key.value;
    return peer.Deliver(send, ScriptedPeer::Bytes(8));
  }
};

TEST(ChannelWindows, Requests_TakeNoMessageNumber) {
  ChannelEnd end;
  end.peer.base().PostSend(kSource, 4);
  end.target.PostBind();
  end.target.PostSendInvalidate(4);
  auto out = end.peer.Out();
  ASSERT_EQ(out.size(), 1u) << "a window waits for what is before it";
  end.peer.Reply(0, wire::kSyndromeAck);
  out = end.peer.Out();
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].frame.message, 1u);
  EXPECT_EQ(out[0].frame.receive, 1u);
  EXPECT_TRUE(out[0].frame.has(wire::kFrameInvalidate));
  EXPECT_EQ(out[0].frame.invalidate_rkey, kSecond.value);
  EXPECT_EQ(end.peer.Reply(0, wire::kSyndromeAck), DropReason::k_stale_response);
  EXPECT_EQ(end.peer.base().Poll().size(), 2u);
  end.peer.Reply(1, wire::kSyndromeAck);
  const rocegw_cqe cqe = end.peer.base().PollOne();
  EXPECT_EQ(cqe.wr_id, 72u);
  EXPECT_EQ(cqe.opcode, kSend);
}

TEST(ChannelWindows, SendInvalidate_TakesTheKeyBackInItsTurn) {
  ChannelEnd end;
  end.target.PostBind();
  end.peer.Out();
  EXPECT_EQ(end.peer.base().PollOne().opcode, kBind);
  end.peer.base().PostReceive(0x8000, 1000);
  // The SEND arrives before an earlier WRITE.
  EXPECT_EQ(end.SendInvalidate(1, kSecond), DropReason::kNone);
  EXPECT_TRUE(end.target.bound_now());
  EXPECT_EQ(end.Write(0), DropReason::kNone);
  EXPECT_FALSE(end.target.bound_now());
  end.peer.Out();
  EXPECT_EQ(end.peer.host().memory()[kWindow], 9);
  const rocegw_cqe cqe = end.peer.base().PollOne();
  EXPECT_EQ(cqe.flags, ROCEGW_CQE_RECEIVE | ROCEGW_CQE_WITH_INV);
  EXPECT_EQ(cqe.imm_or_rkey, kSecond.value);
  EXPECT_EQ(end.peer.state(), QpState::kRts);
}

TEST(ChannelWindows, SendInvalidate_OfWhatIsNotBound_Refused) {
  ChannelEnd end;
  end.peer.base().PostReceive(0x8000, 1000);
  end.SendInvalidate(0, kSecond);
  EXPECT_EQ(end.peer.Out()[0].frame.syndrome, wire::SyndromeOf(wire::NakCode::kRemoteAccess));
  EXPECT_EQ(end.peer.base().PollOne().status, kLocalAccess);
  EXPECT_EQ(end.peer.state(), QpState::kError);
}

TEST(ChannelWindows, PeerThatDoesNotKnowThem_TheRequestFails) {
  ChannelEnd end;
  end.peer.host().context().peer_invalidates = false;
  end.target.PostSendInvalidate(4);
  EXPECT_TRUE(end.peer.Out().empty());
  EXPECT_EQ(end.peer.base().PollOne().status, kLocalQpOperation);
}

TEST(ChannelWindows, LostBeforeItWasHeard_GoesOnAsPlainRoce) {
  ChannelEnd end;
  end.target.PostBind();
  end.peer.base().PostSend(kSource, 4);
  EXPECT_EQ(end.peer.Out().size(), 1u);
  EXPECT_EQ(end.peer.base().PollOne().opcode, kBind);
  end.peer.host().qp().OnCarrierLost(end.peer.host(), end.peer.carrier, false,
                                     wire::ChannelReason::kUnsupported, end.peer.base().now());
  const auto out = end.peer.base().Out();
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].opcode(), Opcode::kRcSendOnly);
  end.peer.base().Deliver(end.peer.base().Ack(kPsn));
  EXPECT_EQ(end.peer.base().PollOne().status, kSuccess);
}

}  // namespace
}  // namespace rocegw::testing::windows
