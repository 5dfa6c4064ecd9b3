# cmake -DDIRECTORY=... -DOUTPUT=... -P embed.cmake: the files of a directory as a C++ source, see page_files.hpp.
file(GLOB files "${DIRECTORY}/*")
set(rows "")
foreach(file ${files})
    get_filename_component(name "${file}" NAME)
    file(READ "${file}" content)
    string(FIND "${content}" ")~page~" found)
    if(NOT found EQUAL -1)
        message(FATAL_ERROR "${file} contains what ends a literal here")
    endif()
    string(APPEND rows "    {\"${name}\", R\"~page~(${content})~page~\"},\n")
endforeach()
file(WRITE "${OUTPUT}" "#include \"page_files.hpp\"

namespace order_server {

namespace {
constexpr page_file files[] = {
${rows}};
}  // namespace

std::span<const page_file> page_files() noexcept { return files; }

}  // namespace order_server
")
