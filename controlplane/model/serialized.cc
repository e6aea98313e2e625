// SPDX-License-Identifier: Apache-2.0
#include "controlplane/model/serialized.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

namespace rocegw::model {

std::string Serialized(const google::protobuf::MessageLite& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  (void)message.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

}  // namespace rocegw::model
