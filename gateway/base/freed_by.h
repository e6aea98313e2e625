// SPDX-License-Identifier: Apache-2.0
// Deleter of objects that a function of a C library frees: std::unique_ptr<T, FreedBy<Free>>.
#pragma once

namespace rocegw {

template <auto kFree>
struct FreedBy {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};

}  // namespace rocegw
