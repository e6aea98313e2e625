// SPDX-License-Identifier: Apache-2.0
#include "gateway/process/config_document.h"

#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

namespace rocegw::process {

std::vector<std::string> ParseDocument(const std::string& yaml, const std::string& file,
                                       const ReadTop& read) {
  Problems problems(file);
  try {
    const YAML::Node root = YAML::Load(yaml);
    if (root.IsMap()) {
      Section top(problems, root, "");
      read(top);
      top.Finish();
    } else if (!root.IsNull()) {
      problems.Add(1, "a mapping (key: value) is expected");
    }
  } catch (const YAML::Exception& error) {
    problems.Add(error.mark.is_null() ? 0 : error.mark.line + 1, "not valid YAML: " + error.msg);
  }
  return problems.Take();
}

std::vector<std::string> ReadDocument(const std::string& file, const ReadTop& read) {
  // Opened as a stream; errno explains a failure, which the standard library leaves from open(2).
  errno = 0;
  std::ifstream stream(file);
  std::stringstream text;
  if (stream) text << stream.rdbuf();
  if (!stream || (text.fail() && errno != 0)) {
    return {file + ": cannot be read: " + std::strerror(errno != 0 ? errno : EIO)};
  }
  return ParseDocument(text.str(), file, read);
}

std::string CheckAbsolutePath(const std::string& text) {
  return text.starts_with('/') ? "" : "'" + text + "' is not an absolute path";
}

std::string CheckSocketPath(const std::string& text) {
  constexpr size_t kMost = sizeof(sockaddr_un{}.sun_path) - 1;
  if (text.size() > kMost) {
    return "a socket path may have " + std::to_string(kMost) + " bytes, this one has " +
           std::to_string(text.size());
  }
  return CheckAbsolutePath(text);
}

}  // namespace rocegw::process
