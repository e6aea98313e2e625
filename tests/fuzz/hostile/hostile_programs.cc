// SPDX-License-Identifier: Apache-2.0
// What the hostile programs do.
#include <algorithm>
#include <cstring>

#include "tests/fuzz/hostile/hostile_world.h"

namespace rocegw::testing {
namespace {

using Harm = Descriptors::Harm;

}  // namespace

void HostileWorld::WriteDescriptors(Line& line, Written& written) {
  Descriptors descriptors(random_, line.type, around_);
  const size_t temper = random_.Below(4);
  figures_.receives += WriteReceives(line, descriptors, temper == 0);
  if (!line.sends()) return;
  const auto wanted = static_cast<uint32_t>(random_.Between(1, kDepth));
  for (uint32_t i = 0; i < wanted; ++i) {
    // Mostly a single field late in the batch, so that much of it has its way before.
    const Harm harm = temper == 0                     ? Harm::kAll
                      : temper == 1 || i + 4 > wanted ? Harm::kField
                                                      : Harm::kHarmless;
    const auto slot = line.hostile.SendSlot(line.hostile.control().sq_producer + i);
    descriptors.WriteSend(slot, harm);
    written.malformed += Malformed(line.type, line.hostile.reply(), slot) ? 1 : 0;
  }
  __atomic_fetch_add(&line.hostile.control().sq_producer, wanted, __ATOMIC_RELEASE);
  written.sends = wanted;
  figures_.sends += wanted;
}

uint32_t HostileWorld::WriteReceives(Line& line, Descriptors& descriptors, bool all_spoiled) {
  if (!line.has_receives() && !line.shares_receives) return 0;
  auto count = static_cast<uint32_t>(random_.Below(8));
  uint32_t& producer =
      line.shares_receives ? line.receives.control().producer : line.hostile.control().rq_producer;
  // What nobody has taken stays in a shared queue from batch to batch.
  if (line.shares_receives)
    count = std::min(count, kDepth - std::min(kDepth, line.receives_left()));
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t index = producer + i;
    // A slot that may be taken still is written like any other.
    if (line.shares_receives)
      line.receives.Order(index) = static_cast<uint32_t>(random_.Below(kDepth));
    descriptors.WriteReceive(line.shares_receives ? line.receives.Slot(line.receives.Order(index))
                                                  : line.hostile.ReceiveSlot(index),
                             all_spoiled      ? Harm::kAll
                             : random_.Coin() ? Harm::kField
                                              : Harm::kHarmless);
  }
  __atomic_fetch_add(&producer, count, __ATOMIC_RELEASE);
  return count;
}

// Everything else that the program may write.
void HostileWorld::Mischief(Line& line, Written& written) {
  if (line.sends() && random_.Below(16) == 0) {
    uint32_t* const indices[] = {&line.hostile.control().sq_producer,
                                 &line.hostile.control().rq_producer};
    *indices[random_.Below(2)] += random_.Coin() ? random_.Value<uint32_t>() : kDepth;
    ++figures_.indices;
    written.exact = false;
  }
  if (line.shares_receives && random_.Below(16) == 0) {
    // A slot that there is not, or more receives than there are slots.
    if (random_.Coin()) {
      line.receives.Order(random_.Value<uint32_t>()) = random_.Value<uint32_t>();
    } else {
      line.receives.control().producer += random_.Coin() ? random_.Value<uint32_t>() : kDepth;
    }
    ++figures_.indices;
    written.exact = false;
    written.damaged = true;
  }
  if (random_.Below(16) == 0) {
    rocegw_cq_control& control = hostile_->cq.control();
    control.worker[0].consumer ^= random_.Value<uint32_t>();
    control.arm = random_.Value<uint32_t>();
    control.sleeping = random_.Value<uint32_t>();
    ++figures_.indices;
    written.exact = false;
    written.damaged = true;
  }
  if (line.sends() && random_.Below(4) == 0) {
    rocegw_doorbell_page& page = line.hostile.page();
    page.summary ^= random_.Bits();
    page.leaf[random_.Below(64)] ^= random_.Bits();
    ++figures_.doorbells;
  }
  if (random_.Below(16) != 0) return;
  std::vector<TestClient::Chunk*> chunks;
  for (auto& [number, chunk] : hostile_->client().chunks) {
    if (!chunk.read_only && chunk.base != nullptr) chunks.push_back(&chunk);
  }
  for (size_t n = random_.Between(1, 64); n != 0; --n) {
    TestClient::Chunk& chunk = *chunks[random_.Below(chunks.size())];
    chunk.base[random_.Below(std::min<uint64_t>(chunk.size, 1 << 16))] = random_.Value<uint8_t>();
    ++figures_.bytes_elsewhere;
  }
  written.exact = false;
  written.damaged = true;
}

// Requests of a second program, spoiled. It has no queue pairs that could use what it registers.
void HostileWorld::SendMessages() {
  static constexpr struct {
    uint32_t type;
    size_t length;
  } kRequests[] = {{ROCEGW_MSG_OPEN_CONTEXT, sizeof(rocegw_open_context)},
                   {ROCEGW_MSG_ALLOC_PD, sizeof(rocegw_alloc_pd)},
                   {ROCEGW_MSG_REG_MR, sizeof(rocegw_reg_mr)},
                   {ROCEGW_MSG_REREG_MR, sizeof(rocegw_rereg_mr)},
                   {ROCEGW_MSG_DEREG_MR, sizeof(rocegw_object_request)},
                   {ROCEGW_MSG_IMPORT_REGION, sizeof(rocegw_import_region)},
                   {ROCEGW_MSG_IMPORT_DEVICE, sizeof(rocegw_import_device)},
                   {ROCEGW_MSG_ALLOC_MW, sizeof(rocegw_alloc_mw)},
                   {ROCEGW_MSG_TAKE_AHS, sizeof(rocegw_ahs)},
                   {ROCEGW_MSG_GIVE_AHS, sizeof(rocegw_ahs)},
                   {ROCEGW_MSG_CREATE_CQ, sizeof(rocegw_create_cq)},
                   {ROCEGW_MSG_RESIZE_CQ, sizeof(rocegw_resize_cq)},
                   {ROCEGW_MSG_CREATE_SRQ, sizeof(rocegw_create_srq)},
                   {ROCEGW_MSG_OPEN_XRCD, sizeof(rocegw_open_xrcd)},
                   {ROCEGW_MSG_CLOSE_XRCD, sizeof(rocegw_object_request)},
                   {ROCEGW_MSG_OPEN_QP, sizeof(rocegw_open_qp)},
                   {ROCEGW_MSG_CREATE_QP, sizeof(rocegw_create_qp)},
                   {ROCEGW_MSG_MODIFY_QP, sizeof(rocegw_modify_qp)},
                   {ROCEGW_MSG_QUERY_QP, sizeof(rocegw_object_request)},
                   {ROCEGW_MSG_DESTROY_QP, sizeof(rocegw_object_request)}};
  if (messenger_ == nullptr || messenger_->closed()) {
    if (messenger_ != nullptr) ++figures_.connections_refused;
    messenger_ = left_.Join(session::kDefaultPool);
    if (random_.Below(8) != 0) messenger_->Hello();
  }
  for (size_t n = random_.Between(1, 8); n != 0; --n) {
    const auto& request = kRequests[random_.Below(std::size(kRequests))];
    const size_t length = random_.Below(32) == 0 ? random_.Between(1, 256) : request.length;
    std::vector<uint8_t> bytes(length);
    // Small numbers name objects, and are most values.
    for (size_t at = 0; at + 4 <= length; at += 4) {
      const uint32_t word = random_.Below(4) == 0 ? random_.Value<uint32_t>()
                                                  : static_cast<uint32_t>(random_.Below(4));
      std::memcpy(&bytes[at], &word, sizeof word);
    }
    rocegw_request header{request.type, static_cast<uint32_t>(length), figures_.messages};
    if (random_.Below(64) == 0) header.type = random_.Value<uint32_t>();
    if (random_.Below(64) == 0) header.length ^= 8;
    std::memcpy(bytes.data(), &header, std::min(sizeof header, length));
    if (!messenger_->SendRaw(bytes)) break;
    ++figures_.messages;
    left_.Settle();
    while (messenger_->Receive()) {
    }
  }
}

}  // namespace rocegw::testing
