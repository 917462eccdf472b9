# Debian packages, a component each (`make deb`). The libraries' names have their soname, so that two versions can be
# installed beside each other.

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "psld maintainers <maintainers@psld.invalid>")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL libpsld libpsld-dev libpsld-full libpsld-full-dev psld)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

# psld_package(COMPONENT NAME SECTION SUMMARY)
macro(psld_package component name section summary)
    string(TOUPPER ${component} upper)
    set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name})
    set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section})
    set(CPACK_COMPONENT_${upper}_DESCRIPTION "${summary}")
    if(CMAKE_INSTALL_PREFIX STREQUAL "/usr") # each package has its licence where Debian looks for it
        install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name} RENAME copyright COMPONENT ${component})
    endif()
endmacro()

psld_package(libpsld libpsld${PSLD_SOVERSION} libs "Diffusion models by the complete recipe: processes, sampling, networks")
psld_package(libpsld-dev libpsld-dev libdevel "Diffusion models by the complete recipe: development files of the core library")
psld_package(libpsld-full libpsld-full${PSLD_SOVERSION} libs
             "Diffusion models by the complete recipe: the core, data sets, training, evaluation, plots")
psld_package(libpsld-full-dev libpsld-full-dev libdevel
             "Diffusion models by the complete recipe: development files of the full library")
psld_package(psld psld science "Diffusion models by the complete recipe: the program, models, configurations, documentation")

# What cannot be found by looking at the binaries: what the .pc files name, and OpenBLAS, which is loaded on demand.
set(same "(= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_LIBPSLD-DEV_PACKAGE_DEPENDS
    "libpsld${PSLD_SOVERSION} ${same}, libyaml-dev, libjansson-dev, zlib1g-dev")
set(full_development libcairo2-dev libpng-dev libjpeg-dev libwebp-dev libarchive-dev)
if(mpi)
    list(APPEND full_development libopenmpi-dev)
endif()
list(JOIN full_development ", " full_development)
set(CPACK_DEBIAN_LIBPSLD-FULL-DEV_PACKAGE_DEPENDS
    "libpsld-full${PSLD_SOVERSION} ${same}, libpsld-dev ${same}, ${full_development}")
set(CPACK_DEBIAN_LIBPSLD-FULL_PACKAGE_RECOMMENDS libopenblas0)
set(CPACK_DEBIAN_PSLD_PACKAGE_RECOMMENDS libopenblas0)

include(CPack)
