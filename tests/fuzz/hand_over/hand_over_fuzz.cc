// SPDX-License-Identifier: Apache-2.0
// State of objects of a gateway that is replaced, with any damage: a reader refuses it, or the
// object that was read works without harm. Input: the number of the object, then its state.
#include <cstdint>
#include <span>

#include "tests/support/hand_over/handed_objects.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using rocegw::testing::HandedObject;
  if (size == 0 || data[0] >= static_cast<uint8_t>(HandedObject::kCount)) return 0;
  (void)rocegw::testing::ReadAndRun(static_cast<HandedObject>(data[0]),
                                    std::span(data, size).subspan(1));
  return 0;
}
