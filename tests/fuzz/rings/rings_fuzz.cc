// SPDX-License-Identifier: Apache-2.0
// A client that writes whatever the input says into everything it may write: slots, indices,
// payload areas, the consumer index and arm word of its completion queue; while its queue pair (RC
// against a good peer, or UD) is pumped, gets memory results and packets. Input: one byte that
// chooses the type, then steps, each a byte for what is done and eight for how. Whatever the client
// does, the queue pair touches nothing outside of its rings and regions, and every call ends.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>

#include "tests/support/qp/qp_host.h"

namespace {

using rocegw::TimePoint;
using rocegw::testing::QpHost;

constexpr size_t kMostSteps = 256;
constexpr size_t kStepLength = 9;
constexpr size_t kMemory = 1 << 16;

uint64_t Load(const uint8_t* from) {
  uint64_t value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

QpHost::Options Small(uint32_t qpn, rocegw::verbs::QpType type,
                      const rocegw::verbs::GidTable& gids) {
  QpHost::Options options;
  options.qpn = qpn;
  options.type = type;
  options.gids = &gids;
  options.gid = gids.entries[0];
  options.memory_bytes = kMemory;
  options.sq_entries = options.rq_entries = 8;
  options.cq_entries = 16;
  options.payload_stride = 64;
  options.placement = qpn != 0x10;
  options.rq_payload_stride = (qpn & 1) != 0 ? 128 : 0;
  return options;
}

// A window, and a region of all memory that it may be bound to.
constexpr rocegw::MemoryKey kWindow{0x12345600};
constexpr rocegw::MemoryKey kBindable{0x77777777};
struct Window {
  explicit Window(QpHost& host) {
    rocegw::verbs::RegionConfig region;
    region.key = kBindable;
    region.session = rocegw::SessionId{1};
    region.pd = 1;
    region.access = rocegw::verbs::kAccessLocalWrite;
    region.iova = region.address = QpHost::kBase;
    region.length = kMemory;
    region.windows = &bound;
    host.regions().Link(region);
    host.regions().LinkWindow(rocegw::verbs::MemoryWindow::NameOf(kWindow), window);
  }
  rocegw::verbs::BoundWindows bound;
  rocegw::verbs::MemoryWindow window{rocegw::verbs::MwType::kType2, rocegw::SessionId{1}, 1,
                                     kWindow};
};

// What a program that follows the rules would write, so that inputs get deep.
void WellFormed(QpHost& host, uint64_t how) {
  rocegw_send_wqe wqe{};
  wqe.opcode = static_cast<uint8_t>(how % 12);
  // The two behind those of plain verbs.
  if (wqe.opcode >= 10) wqe.opcode += ROCEGW_WR_FLUSH - 10;
  wqe.flags = static_cast<uint16_t>(how >> 8 & 0x10F);
  wqe.num_sge = 1;
  wqe.u.rdma.remote_address = QpHost::kBase + (how >> 32 & 0xFFFF);
  wqe.u.rdma.rkey = 0x1002;
  if (wqe.opcode >= ROCEGW_WR_LOCAL_INV) wqe.imm_or_rkey = kWindow.value | (how >> 20 & 1);
  if (wqe.opcode == ROCEGW_WR_BIND_MW) {
    wqe.u.bind = {QpHost::kBase + (how >> 32 & 0xFFFF),
                  how >> 48,
                  kBindable.value,
                  kWindow.value | static_cast<uint32_t>(how >> 21 & 1),
                  static_cast<uint32_t>(how >> 24 & 0x3F),
                  0};
  }
  if (wqe.opcode == ROCEGW_WR_FLUSH) {
    wqe.num_sge = 0;
    wqe.u.rdma.compare_add = how >> 48;
    wqe.u.rdma.swap = how >> 24 & 0x3F;
  }
  const bool atomic = wqe.opcode == ROCEGW_WR_ATOMIC_CMP_AND_SWP ||
                      wqe.opcode == ROCEGW_WR_ATOMIC_FETCH_AND_ADD ||
                      wqe.opcode >= ROCEGW_WR_ATOMIC_WRITE;
  const bool in_ring = (wqe.flags & (ROCEGW_WQE_INLINE | ROCEGW_WQE_COPIED)) != 0;
  const uint32_t length =
      atomic ? 8 : static_cast<uint32_t>((how >> 16 & 0xFFF) % (in_ring ? 65 : 4096));
  const rocegw_sge sge{QpHost::kBase + (how >> 48 & 0xFFF), length, host.key()};
  uint32_t& producer = host.rings().control().sq_producer;
  uint8_t* const slot = host.rings().SqSlot(producer);
  std::memcpy(slot, &wqe, sizeof wqe);
  std::memcpy(slot + sizeof wqe, &sge, sizeof sge);
  ++producer;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto type = (data[0] & 1) != 0 ? rocegw::verbs::QpType::kUd : rocegw::verbs::QpType::kRc;
  rocegw::verbs::GidTable gids[2];
  gids[0].entries[0] = rocegw::wire::Gid::FromV4(0xC0000201);
  gids[1].entries[0] = rocegw::wire::Gid::FromV4(0xC0000202);
  QpHost client(Small((data[0] & 2) != 0 ? 0x11 : 0x10, type, gids[0]));
  QpHost peer(Small(2, rocegw::verbs::QpType::kRc, gids[1]));
  Window window(client);
  if (type == rocegw::verbs::QpType::kRc) {
    QpHost::Connect(client, peer, 1, 100, 200);
  } else {
    rocegw::verbs::QpAttributes want;
    using namespace rocegw::verbs;  // NOLINT(google-build-using-namespace)
    const auto step = [&](QpState state, uint32_t mask) {
      want.state = state;
      if (client.Modify(kAttrState | mask, want) != 0) std::abort();
    };
    step(QpState::kInit, kAttrPkeyIndex | kAttrPort | kAttrQkey);
    step(QpState::kRtr, 0);
    step(QpState::kRts, kAttrSqPsn);
  }
  const QpHost::Sge all{0, 4096};
  for (int i = 0; i < 8; ++i) peer.PostReceive(1, {all});
  TimePoint now{1000000000};
  const auto exchange = [&] {
    for (int round = 0; round < 4; ++round) {
      client.Pump(now);
      client.Settle();
      for (; !client.sent.empty(); client.sent.pop_front()) {
        if (type == rocegw::verbs::QpType::kRc) peer.Deliver(client.sent.front(), now);
      }
      peer.Pump(now);
      peer.Settle();
      for (; !peer.sent.empty(); peer.sent.pop_front()) client.Deliver(peer.sent.front(), now);
    }
  };
  std::span<const uint8_t> rest(data + 1, size - 1);
  const rocegw::verbs::QpConfig shared = client.rings().Qp();
  for (size_t n = 0; n < kMostSteps && rest.size() >= kStepLength; ++n) {
    const uint64_t how = Load(rest.data() + 1);
    const auto word = static_cast<uint32_t>(how);
    rocegw_qp_control& control = client.rings().control();
    // Client memory is const only for the daemon.
    const auto write = [&](const uint8_t* area, size_t length) {
      const size_t at = (how >> 40) % length;
      const size_t bytes = std::min<size_t>(5, length - at);
      std::memcpy(const_cast<uint8_t*>(area) + at, &how, bytes);
    };
    switch (rest[0] % 12) {
      case 0:
        control.sq_producer = word;
        break;
      case 1:
        control.sq_producer += word % 10;
        break;
      case 2:
        control.rq_producer = word;
        break;
      case 3:
        control.rq_producer += word % 10;
        break;
      case 4:
        write(shared.sq, size_t{shared.sq_entries} * shared.sq_stride);
        break;
      case 5:
        write(shared.rq, size_t{shared.rq_entries} * shared.rq_stride);
        break;
      case 6:
        write(shared.sq_payload, size_t{shared.sq_entries} * shared.sq_payload_stride);
        break;
      case 7:
        client.rings().cq_control()->worker[0].consumer = word;
        client.rings().cq_control()->arm = static_cast<uint32_t>(how >> 32);
        break;
      case 8:
        WellFormed(client, how);
        break;
      case 9:
        now = now + rocegw::Duration{static_cast<int64_t>(word)};
        client.Deadline(now);
        peer.Deadline(now);
        break;
      case 10:
        client.Poll();
        break;
      default:
        exchange();
    }
    rest = rest.subspan(kStepLength);
  }
  exchange();
  // However it went: an error can always be asked for, and a reset cleans up.
  (void)client.ToState(rocegw::verbs::QpState::kError);
  client.Settle();
  if (client.ToState(rocegw::verbs::QpState::kReset) != 0) std::abort();
  client.Settle();
  if (client.rings().Qp().status->state != 0) std::abort();
  return 0;
}
