// SPDX-License-Identifier: Apache-2.0
// Program for tests of the library: opens rocegw0 if there is one.
#include <infiniband/verbs.h>

#include <cstring>

int main() {
  ibv_device** const list = ibv_get_device_list(nullptr);
  ibv_context* context = nullptr;
  for (ibv_device** at = list; at != nullptr && *at != nullptr; ++at) {
    if (std::strcmp(ibv_get_device_name(*at), "rocegw0") == 0) context = ibv_open_device(*at);
  }
  if (context != nullptr) ibv_close_device(context);
  return context != nullptr ? 0 : 1;
}
