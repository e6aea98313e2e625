// SPDX-License-Identifier: Apache-2.0
#include "controlplane/cli/printing.h"

#include <ctime>
#include <iostream>

#include "controlplane/cli/views/object_views.h"

namespace rocegw::cli {

void PrintObjects(const Program& program, const Kind& kind, const std::vector<MessagePtr>& objects,
                  bool single) {
  const std::string& format = program.options.format;
  Messages list;
  for (const MessagePtr& object : objects) list.push_back(object.get());
  if (format == "json") {
    std::cout << (single ? ObjectJson(*list[0]) : ObjectsJson(std::string(kind.plural), list));
  } else if (format == "yaml") {
    std::cout << ObjectsYaml(list);
  } else if (format == "name") {
    for (const auto* object : list) std::cout << TextOf(*object, "name") << "\n";
  } else if (list.empty()) {
    std::cerr << "no " << kind.plural << "\n";
  } else {
    Table table = ObjectTable(kind, program.wide());
    for (const auto* object : list) {
      AddObject(kind, *object, program.wide(), Program::Now(), table);
    }
    std::cout << table.Text(program.line_limit(), Program::colour());
  }
}

std::string TimeText(int64_t seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  gmtime_r(&time, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

}  // namespace rocegw::cli
