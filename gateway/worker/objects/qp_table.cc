// SPDX-License-Identifier: Apache-2.0
#include "gateway/worker/objects/qp_table.h"

namespace rocegw::worker {

SlotHandle QpTable::Add(Qpn qpn) {
  uint32_t index;
  if (free_.empty()) {
    index = static_cast<uint32_t>(slots_.size());
    slots_.emplace_back();
  } else {
    index = free_.back();
    free_.pop_back();
  }
  const SlotHandle handle{index, slots_[index].generation};
  by_qpn_.Insert(qpn.value, handle);
  return handle;
}

void QpTable::Remove(Qpn qpn, QpSlot& slot) {
  by_qpn_.Erase(qpn.value);
  slot.qp.reset();
  slot.session = nullptr;
  ++slot.generation;
  free_.push_back(static_cast<uint32_t>(&slot - slots_.data()));
}

}  // namespace rocegw::worker
