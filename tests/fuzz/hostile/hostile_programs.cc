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

// Slots of send and receive descriptors.
std::vector<std::span<uint8_t>> HostileWorld::SlotsOf(Line& line) {
  std::vector<std::span<uint8_t>> slots;
  for (uint32_t i = 0; i < kDepth; ++i) {
    if (line.sends()) slots.push_back(line.hostile.SendSlot(i));
    if (line.has_receives()) slots.push_back(line.hostile.ReceiveSlot(i));
    if (line.shares_receives) slots.push_back(line.receives.Slot(i));
  }
  return slots;
}

void HostileWorld::MoveEndpoint(Program& program, const ClientQp& endpoint) {
  ++figures_.endpoint_moves;
  auto move = TestClient::Request<rocegw_modify_ep>(ROCEGW_MSG_MODIFY_EP);
  move.qp = endpoint.reply().handle;
  move.state = random_.Below(8) == 0 ? random_.Value<uint32_t>()
                                     : static_cast<uint32_t>(random_.Below(ROCEGW_EP_ERROR + 1));
  move.notify = random_.Coin() ? 1 : 0;
  program.client().Call<rocegw_object_reply>(move);
  auto query = TestClient::Request<rocegw_object_request>(ROCEGW_MSG_QUERY_EP);
  query.handle = endpoint.reply().handle;
  const auto known = program.client().Call<rocegw_query_ep_reply>(query);
  if (program.client().closed()) return;
  Require(program.client().error() == 0, "an endpoint's state is not told");
  Require(known.state <= ROCEGW_EP_ERROR && known.requests <= kDepth, "an endpoint's state is odd");
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

}  // namespace rocegw::testing
